#!/bin/sh
# A worker for `disk-usage` in POSIX sh: the task is JSON on stdin, what is printed becomes its outputs.
set -eu

task=$(cat)
# Only a plain path is taken out of the JSON, so that nothing in it can be anything else.
folder=$(printf '%s\n' "$task" | sed -n 's|.*"folder": *"\([A-Za-z0-9/._-]*\)".*|\1|p')
if [ -z "$folder" ]; then
  echo "inputs.folder is missing, or holds more than letters, digits, /, ., _ and -" >&2
  exit 1
fi

# POSIX: a heading, then device, blocks, used, available, capacity, mount point; blocks of 1024 bytes.
df -Pk -- "$folder" | {
  read -r _
  read -r _ total used free _
  printf '{"folder": "%s", "total_kib": %s, "used_kib": %s, "free_kib": %s}\n' \
    "$folder" "$total" "$used" "$free"
}
