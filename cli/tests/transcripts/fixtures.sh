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

# words FROM COUNT: words that nothing else has, from the number FROM on.
words() { seq -s ' ' -f 'word%.0f' "$1" $(($1 + $2 - 1)); }

# brief: lines, with the texts of `text` cut short.
brief() { sed 's/\(w[0-9a-f]* \)\{5,\}\(changed \)*/… /g; s/\(… \)\{2,\}/… /g' "$@"; }

# page STYLE TEXT: a page of HTML as sites write it, on one line: with scripts, styles, entities, and tags that do not fit.
page() {
  local paragraphs scripts
  paragraphs=$(echo "$2" | xargs -n 40)
  case $1 in
    0)
      printf '<!doctype html> <html><head><title>A &amp; B</title><style>p { color: red } </style>'
      printf "<script>var page = '<p>no text</p>';</script></head><body>"
      echo "$paragraphs" | sed 's|.*|<p class=a>&</p> |' | tr -d '\n'
      printf '</body></html>' ;;
    1)
      printf '<title>A & B</title><table><tr><td>'
      echo "$paragraphs" | sed 's/ /\&#32;/1; s/ /\&#32;/4; s|.*|<DIV><b><i>&</b></i></span>|' | tr -d '\n'
      printf '<script src=x></script><!-- %s -->' "$2" ;;
    *)
      scripts=$(printf "<script>if (a < b) { document.write('x y z'); }</script>%.0s" {1..30})
      printf '<body>%s<h1>A &amp B</h1>' "$scripts"
      echo "$paragraphs" | sed 's| w| <em>w</em>|3; s| w| <em>w</em>|9; s|.*|<section><p>&</section>|' | tr -d '\n'
      printf '<template><p>a card</p> to fill</template>%s<noscript>turn it on</noscript>' "$scripts" ;;
  esac
}

# families COUNT CHANGED: pairs of texts with words of their own, the second with CHANGED of 104 words replaced. Of 100 shingles
# 100 - CHANGED are shared.
families() {
  awk -v count="$1" -v changed="$2" 'BEGIN {
    for (pair = 0; pair < count; pair++) for (side = 0; side < 2; side++) {
      own = side ? "b" : "a"; text = ""
      for (word = 0; word < 104; word++) text = text "w" changed "x" pair "x" word (word < changed ? own : "") " "
      printf "{\"id\":\"%s%d-%d\",\"text\":\"%s\"}\n", own, pair, changed, text
    }
  }'
}

# articles: statements that put documents, read as lines, into the table articles, with the rowids 10, 20, and so on. They are for
# `sql FILE`, a command that the runner of transcripts has: it runs the statements and prints their rows.
articles() {
  local document
  echo 'CREATE TABLE IF NOT EXISTS articles (id TEXT, text TEXT, score REAL, seen TEXT);'
  while IFS= read -r document; do
    echo "INSERT INTO articles (rowid, id, text, score, seen) SELECT coalesce(max(rowid), 0) + 10, '$document' ->> 'id'," \
      "'$document' ->> 'text', length('$document' ->> 'text'), '2026-01-31T08:00:00Z' FROM articles;"
  done
}

# ten: the documents of which `tables`, another such command, makes c.jsonl, c.parquet, c.arrow and c.arrows.
ten() {
  local number
  for number in 1 2 3 4 5 6; do doc $((99 + number)) "$number"; done
  doc 106 1; doc 107 2 1; doc 108 3 1; doc 109 3 2
}

# verbs CORPUS: what every verb that reads a corpus prints. The file tests.jsonl has documents to compare it with.
verbs() {
  local report='--report r.tsv --force -q'
  rm -f ./*.rsm
  resemblance build a.rsm "$1" -q; resemblance list a.rsm -q
  resemblance build b.rsm tests.jsonl -q; resemblance query b.rsm --corpus "$1" -q
  resemblance add b.rsm "$1" --if-new 2>&1 | tail -n 1
  resemblance build c.rsm tests.jsonl --containment 5 -q; resemblance contain --in c.rsm --query "$1" -q
  resemblance pairs "$1" -q; resemblance clusters "$1" -q; resemblance explain 100 106 --corpus "$1" -q | head -n 2 | brief
  resemblance eval "$1" --sample 10 -q | grep candidate_recall; resemblance tune --corpus "$1" -q | cut -f1-4
  resemblance report "$1" -o r.html --force -q; grep -o '<h1>[^<]*' r.html
  resemblance dedup "$1" -o out/ $report; cat r.tsv
  resemblance dedup "$1" -o out/ --policy cluster --keep longest $report; cat r.tsv
  resemblance decontaminate "$1" --against tests.jsonl -o out/ $report; cat r.tsv
  resemblance decontaminate tests.jsonl --against "$1" -o out/ $report; cut -f1-5 r.tsv # the last names the file
}

# around: sixty families of texts: b is above the threshold 0.8 to a, and c is below it. family_pairs: how many rows of a table
# join which members of a family, with which similarity.
around() {
  local number
  for ((number = 1000; number < 1060; number++)); do
    doc "$number-a" "$number"; doc "$number-b" "$number" 4; doc "$number-c" "$number" 5
  done
}
family_pairs() { sed -n 's/^[0-9]*-\(.\)\t[0-9]*-\(.\)\t/\1\2 /p' | sort | uniq -c; }

# limited ARGUMENTS: the tool where no file may grow beyond 2 MB.
limited() { (ulimit -f 2000; resemblance "$@" 2>&1; echo "exit $?"); }

# warc URI BODY [STATUS [MEDIA]]: a record of WARC with a response.
warc() {
  local LC_ALL=C http
  http=$(printf 'HTTP/1.1 %s\r\nContent-Type: %s\r\n\r\n%s' "${3:-200 OK}" "${4:-text/html}" "$2")
  printf 'WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: %s\r\nWARC-Date: 2026-01-31T08:00:00Z\r\n' "$1"
  printf 'WARC-Record-ID: <urn:uuid:%s>\r\nContent-Type: application/http;msgtype=response\r\n' "${1##*/}"
  printf 'Content-Length: %d\r\n\r\n%s\r\n\r\n' "${#http}" "$http"
}

# crawl: five pages, of which two are near-duplicates and one was not found, each in a gzip member.
crawl() {
  warc http://a.example/1 "$(page 0 "$(text 1)")" | gzip
  warc http://a.example/2 "$(page 1 "$(text 1 1)")" | gzip
  warc http://a.example/3 "$(text 2)" '200 OK' text/plain | gzip
  warc http://a.example/4 "$(text 3)" '404 Not Found' | gzip
  warc http://a.example/5 x '200 OK' image/png | gzip
}

# embeddings FAMILIES: vectors of 2 × FAMILIES numbers. In each family, a and b have a cosine of 0.99, b and c of 0.952, a and c of
# 0.9. Those of different families have a cosine of 0.
embeddings() {
  awk -v families="$1" 'BEGIN {
    split("1 0.99 0.9", x); split("0 0.1410674 0.4358899", y); split("a b c", name)
    for (family = 0; family < families; family++) for (member = 1; member <= 3; member++) {
      printf "{\"id\":\"%s%d\",\"vector\":[", name[member], family
      for (place = 0; place < 2 * families; place++)
        printf "%s%s", place ? "," : "", place == 2 * family ? x[member] : place == 2 * family + 1 ? y[member] : 0
      print "]}"
    }
  }'
}

# npy TYPE ROWS COLUMNS: the header of an array of NumPy.
npy() { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2, $3), }"; }
