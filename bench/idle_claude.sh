#!/bin/sh
# A fake CLI that is small, answers every request and waits: two hundred of them fit anywhere.
case "$1" in
-v | --version) echo "2.1.325 (Claude Code)"; exit 0 ;;
esac
while IFS= read -r line; do
  case "$line" in
  *'"control_request"'*)
    id=${line#*'"request_id"'}
    id=${id#*\"}
    id=${id%%\"*}
    printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$id"
    case "$line" in *end_session*) exit 0 ;; esac
    ;;
  esac
done
