//! Checks that the bands and tables of a schema suit the number of documents in a store.

use super::definition::Schema;

/// A report on whether the bands and tables of a schema suit a number of documents. Answers are
/// right for any number; queries do more work if it exceeds the expected number.
///
/// ```
/// use resemblance_sketch::{DesignReport, Schema, SimHash};
/// let schema = Schema::builder().simhash(SimHash::bits64()).expected_documents(1_000).build()?;
/// assert_eq!(DesignReport::new(&schema, 1_000).advice, None);
/// let outgrown = DesignReport::new(&schema, 5_000_000);
/// assert!(outgrown.is_outgrown && outgrown.advice.unwrap().contains("reband"));
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DesignReport {
    /// The number of live documents.
    pub documents: u64,
    /// The number of documents that the schema expects.
    pub expected_documents: u64,
    /// True if there are more documents than the schema expects.
    pub is_outgrown: bool,
    /// The number of candidates that a query reads from all permuted tables, if fingerprints are
    /// uniform; 0 without SimHash.
    pub table_candidates: f64,
    /// The mean number of candidates that share a code with a query only because codes are short; 0
    /// without MinHash.
    pub chance_candidates: f64,
    /// Advice for the user if there are more documents than expected.
    pub advice: Option<String>,
}

impl DesignReport {
    /// Creates the report for a store of this schema with `documents` documents.
    #[must_use]
    pub fn new(schema: &Schema, documents: u64) -> Self {
        let design = schema.simhash.as_ref();
        let table_candidates = design.map_or(0.0, |design| design.candidates(documents));
        let chance_candidates = schema.minhash.map_or(0.0, |minhash| {
            let codes = 2_f64.powi(i32::from(minhash.code_bits));
            documents as f64 * f64::from(minhash.bands()) / codes
        });
        let mut report = Self {
            documents,
            expected_documents: schema.expected_documents,
            is_outgrown: schema.has_families() && documents > schema.expected_documents,
            table_candidates,
            chance_candidates,
            advice: None,
        };
        if report.is_outgrown {
            report.advice = Some(report.advice_for(schema));
        }
        report
    }

    fn advice_for(&self, schema: &Schema) -> String {
        let mut reads = Vec::new();
        if schema.simhash.is_some() {
            let candidates = self.table_candidates;
            reads.push(format!("{candidates:.1} candidates in SimHash tables"));
        }
        if schema.minhash.is_some() {
            let candidates = self.chance_candidates;
            reads.push(format!("{candidates:.1} in bands by chance"));
        }
        let codes = if self.chance_candidates >= 1.0 {
            " and more --code-bits"
        } else {
            ""
        };
        format!(
            "{} documents are more than the {} that the store was designed for: a query reads about {}; \
             answers remain correct. To adapt it: resemblance reband STORE --expected-documents N{codes}",
            self.documents,
            self.expected_documents,
            reads.join(" and "),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{MinHash, SimHash};

    #[test]
    fn schema_design_counts_candidates_of_its_lanes() {
        let minhash = MinHash::new(128).banding(16, 8).code_bits(32);
        let builder = Schema::builder().minhash(minhash);
        let builder = builder.simhash(SimHash::bits64());
        let schema = builder.expected_documents(1 << 20).build().unwrap();
        let report = DesignReport::new(&schema, 1 << 20);
        assert!(!report.is_outgrown && report.advice.is_none());
        // 16 bands of codes of 32 bits: 2^20 x 16 / 2^32.
        assert_eq!(report.chance_candidates, 1.0 / 256.0);
        let tables = schema.simhash().unwrap();
        let most = f64::from(1 << 20) * tables.table_count() as f64;
        let (short, long) = tables.prefix_bits().into_inner();
        let share = |bits: u8| most / 2_f64.powi(bits.into());
        assert!((share(long)..=share(short)).contains(&report.table_candidates));

        let report = DesignReport::new(&schema, (1 << 20) + 1);
        let advice = report.advice.unwrap();
        assert!(
            report.is_outgrown && advice.contains("1048577 documents are more than the 1048576")
        );
        assert!(advice.contains("resemblance reband") && !advice.contains("--code-bits"));
        let report = DesignReport::new(&schema, 1 << 30);
        assert!(report.advice.unwrap().contains("--code-bits"));
    }
}
