# Functions with which transcripts write their corpora.

# text NUMBER [CHANGES]: 200 words of which no other number shares five in a row. One changed word spoils five of 196 shingles,
# which leaves a similarity of 0.95; two leave 0.90, four 0.81.
text() {
  local state=$1 position
  for ((position = 0; position < 200; position++)); do
    state=$((state * 6364136223846793005 + 1442695040888963407))
    if ((position % 40 == 20 && position / 40 < ${2:-0})); then
      printf 'changed '
    else
      printf 'w%x ' $(((state >> 40) & 0xffffff))
    fi
  done
}

# line KEY TEXT: one document.
line() { printf '{"id":"%s","text":"%s"}\n' "$1" "$2"; }

# doc KEY NUMBER [CHANGES]: one document with such a text.
doc() { line "$1" "$(text "${@:2}")"; }

# distinct FROM TO: documents with the keys FROM to TO - 1 and different texts.
distinct() {
  local number
  for ((number = $1; number < $2; number++)); do doc "$number" "$number"; done
}

# mixed: near-duplicates and others; survivors: those that dedup keeps.
mixed() { doc a 1; doc a-again 1; doc b 2; doc a-near 1 1; doc c 3; doc b-near 2 1; doc d 4; }
survivors() { doc a 1; doc b 2; doc c 3; doc d 4; }

# files: every file below the folder. count STORE: its number of documents.
files() { find . -type f | sed 's|^\./||' | LC_ALL=C sort | tr '\n' ' '; echo; }
count() { resemblance stats "$1" --format tsv -q | sed -n 's/^store\t\tdocuments\t//p'; }
keys() { resemblance list "$1" -q --no-header | cut -f1 | tr '\n' ' '; echo; }

# ids FILE: the ids of its lines.
ids() { grep -o '"id": *[^,]*' "$1" | cut -d: -f2 | tr '\n' ' '; echo; }
