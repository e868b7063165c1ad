//! How a table of verdicts is told from others: by a comment in its definition, which SQLite keeps as it was written.

const BEGIN: &str = "/* resemblance verdicts of ";
const END: &str = " */";

/// The comment for verdicts on the rows of a table.
pub(super) fn marker(table: &str) -> Result<String, serde_json::Error> {
    let name = serde_json::to_string(table)?;
    // The name of a table may have the end of a comment in it.
    Ok(format!("{BEGIN}{}{END}", name.replace('/', "\\/")))
}

/// The table whose verdicts a table has that was defined so, if it has any.
pub(super) fn source_of_verdicts(sql: &str) -> Option<String> {
    let (_, rest) = sql.split_once(BEGIN)?;
    let (name, _) = rest.split_once(END)?;
    serde_json::from_str(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_found_again() {
        for name in ["articles", "a */ b", "\"q\" \\ /* \n é", ""] {
            let sql = format!("CREATE TABLE v ({} row_id)", marker(name).unwrap());
            assert_eq!(sql.matches("*/").count(), 1, "{sql}");
            assert_eq!(source_of_verdicts(&sql).as_deref(), Some(name));
        }
        assert_eq!(source_of_verdicts("CREATE TABLE v (kept)"), None);
    }
}
