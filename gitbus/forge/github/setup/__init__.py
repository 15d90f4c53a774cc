"""What a bus on GitHub needs there: workflows, code owners, rules, environments; and what examines them."""
