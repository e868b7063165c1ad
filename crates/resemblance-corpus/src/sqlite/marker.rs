//! The comment that identifies tables of verdicts.

/// The beginning and the end of the comment. SQLite keeps definitions as they were written.
const BEGIN: &str = "/* resemblance verdicts of ";
const END: &str = " */";

/// Returns the comment for verdicts on the rows of a table.
pub(super) fn marker(table: &str) -> String {
    let name = serde_json::Value::from(table).to_string();
    // The name of a table may contain the end of a comment.
    format!("{BEGIN}{}{END}", name.replace('/', "\\/"))
}

/// Returns the table to which the verdicts of a table with this definition refer, if it is a table
/// of verdicts.
pub(super) fn source_of_verdicts(sql: &str) -> Option<String> {
    let (_, rest) = sql.split_once(BEGIN)?;
    let (name, _) = rest.split_once(END)?;
    serde_json::from_str(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_marker_finds_any_name_again() {
        for name in ["articles", "a */ b", "\"q\" \\ /* \n é", ""] {
            let sql = format!("CREATE TABLE v ({} row_id)", marker(name));
            assert_eq!(sql.matches("*/").count(), 1, "{sql}");
            assert_eq!(source_of_verdicts(&sql).as_deref(), Some(name));
        }
        assert_eq!(source_of_verdicts("CREATE TABLE v (kept)"), None);
    }
}
