# Writes the corpus of the tutorial: 1,000 articles, of which some repeat others. Every awk writes the same bytes.
function roll(n) { seed = seed * 16807 % 2147483647; return int(seed / 2147483647 * n) + 1 }
function one(list, words, n) { n = split(list, words, "|"); return words[roll(n)] }
function sentence() {
    return "The " one(who) " of " one(where) " " one(what) " the " one(thing) " " one(why) ", " one(more) "."
}
function line(text) {
    if (count == 1000) return text
    count++
    sub(/^ /, "", text)
    printf "{\"id\": \"%s/%04d\", \"text\": \"%s\"}\n", one(sites), count, text
    return text
}
BEGIN {
    seed = 2026
    sites = "gazette|courier|herald|tribune|observer"
    who = "mayor|council|police|hospital|harbour office|university|court|library|fire brigade|museum|bank|water board|theatre|school"
    where = "Alton|Berwick|Corby|Dalton|Easton|Fairford|Grimsby|Halford|Ilmer|Jarrow|Kelso|Ludlow|Melton|Norwich|Oldham|Penrith"
    what = "opened|closed|sold|praised|rejected|repaired|postponed|inspected|doubled|cancelled|approved|rebuilt|insured|moved"
    thing = "old bridge|night bus|city archive|winter market|bicycle lane|north quay|public garden|tram line|power station|swimming hall|railway bridge|annual fair"
    why = "after months of debate|for lack of money|against all advice|at short notice|on Monday|without a vote|in spite of protests|before the holidays|for the third time"
    more = "a spokesman said|and nobody was surprised|which took four hours|as the papers show|and neighbours were relieved|though the costs are not known|which had been expected|and more is to follow"
    while (count < 1000) {
        kind = roll(20)
        text = ""
        if (kind == 1) line("Please enable cookies to read this article.")
        else for (n = 4 + roll(5); n > 0; n--) text = text " " sentence()
        if (text == "") continue
        text = line(text)
        if (kind == 2) line(text)                                   # a copy
        if (kind == 3) line(text " (AP)")                           # a copy with its source
        if (kind == 4) line(text " " sentence())                    # one sentence more
        if (kind == 5) { sub(/[^.]*\.$/, " " sentence(), text); line(text) }  # another end
        if (kind == 6) line(substr(text, 1, index(text, ".")) " " sentence() " " sentence())  # only the same beginning
    }
}
