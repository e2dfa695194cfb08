"""Reads `go test -json` and prints failures in full and the counts at the end."""

import collections
import json
import sys


def main(path):
    counts = collections.Counter()
    output = collections.defaultdict(list)
    slow = []
    skipped = []
    for line in open(path, encoding="utf-8", errors="replace"):
        try:
            record = json.loads(line)
        except ValueError:
            print(line, end="")  # the go command itself complains outside JSON
            continue
        key = (record.get("Package") or record.get("ImportPath", ""), record.get("Test", ""))
        action = record["Action"]
        if action in ("output", "build-output"):
            output[key].append(record["Output"])
        elif action in ("fail", "build-fail"):
            if key[1]:
                counts["failed"] += 1
            sys.stdout.writelines(output.pop(key, []))
        elif action in ("pass", "skip") and key[1]:
            counts["passed" if action == "pass" else "skipped"] += 1
            lines = output.pop(key, [])
            if action == "skip":
                reason = [l.strip() for l in lines if not l.lstrip().startswith(("===", "---"))]
                skipped.append(f"{key[0]} {key[1]}: {' '.join(reason)}")
        if action in ("pass", "fail") and not key[1]:
            slow.append((record.get("Elapsed", 0), key[0]))

    for line in skipped:
        print("skipped", line)
    slow.sort(reverse=True)
    for seconds, package in slow[:5]:
        print(f"{seconds:7.1f}s {package}")
    print(f"{len(slow)} packages")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")


main(sys.argv[1])
