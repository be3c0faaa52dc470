#!/bin/sh
# Lets a ClickHouse that was killed accept the insert whose part it has lost. Run it before each start of a server without
# replication, with the path of its data, and of each other disk that has tables.
#
# The server writes the token of an insert into a log of the table before it renames the part, both under one lock. A token at
# the end of the log, of which no part exists, is therefore of an insert that was never confirmed. Its client repeats it, and the
# server would ignore it. Each log is a text file that is only appended to, with lines of operation (1 added, 2 dropped), part and token.
set -eu
[ $# -gt 0 ] || { echo "usage: $0 DATA_DIRECTORY..." >&2; exit 2; }

# The inserts of a running server are not finished.
for disk in "$@"; do
  if [ -e "$disk/status" ] && command -v flock >/dev/null && ! flock -n "$disk/status" true; then
    echo "a ClickHouse server is running in $disk" >&2
    exit 1
  fi
done

# Prints a line of operation "dropped" for each token among the last lines on stdin whose part no directory on stdin contains.
lost() {
  awk -F '\t' '
    NF == 1 && split($1, name, "_") >= 4 && $1 ~ /^[^_]+_[0-9]+_[0-9]+_[0-9]+/ {
      partition[++parts] = name[1]; first[parts] = name[2] + 0; last[parts] = name[3] + 0
    }
    NF == 3 && $1 == 1 { part[$3] = $2 }
    NF == 3 && $1 == 2 { delete part[$3] }
    END {
      for (token in part) {
        split(part[token], name, "_")
        exists = 0
        for (i = 1; i <= parts && !exists; i++)
          exists = partition[i] == name[1] && first[i] <= name[2] + 0 && name[3] + 0 <= last[i]
        if (!exists) print "2\t" part[token] "\t" token
      }
    }'
}

for disk in "$@"; do
  for logs in "$disk"/store/*/*/deduplication_logs; do
    [ -d "$logs" ] || continue
    table=${logs#"$disk"/}
    table=${table%/deduplication_logs}
    # The last line is in the newest log, or in the one before it if that has just been begun.
    newest=$(ls "$logs" | sort -t _ -k 3 -n | tail -n 2)
    [ -n "$newest" ] || continue
    records=$(
      {
        for each in "$@"; do [ -d "$each/$table" ] && ls "$each/$table"; done
        for file in $newest; do tail -n 64 "$logs/$file"; done
      } | lost
    )
    [ -n "$records" ] || continue
    printf '%s\n' "$records" >>"$logs/$(echo "$newest" | tail -n 1)"
    printf '%s\n' "$records" | while IFS="$(printf '\t')" read -r _ part _; do echo "forgot $part of $table, which was lost"; done
  done
done
