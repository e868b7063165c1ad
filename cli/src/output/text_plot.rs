//! Curves drawn with letters, for terminals.

use std::fmt::Write as _;

/// Columns and lines of the plane, without its labels.
const WIDTH: usize = 61;
const HEIGHT: usize = 16;
const MARKS: [char; 8] = ['*', 'o', '+', 'x', '#', '@', '%', '&'];

/// Functions from similarities in [0, 1] to probabilities in [0, 1].
pub(crate) struct TextPlot {
    cells: Vec<Vec<char>>,
    names: Vec<(char, String)>,
}

impl TextPlot {
    pub(crate) fn new() -> Self {
        Self {
            cells: vec![vec![' '; WIDTH]; HEIGHT],
            names: Vec::new(),
        }
    }

    /// Marks a similarity from bottom to top.
    pub(crate) fn upright(&mut self, name: &str, similarity: f64) {
        let column = rank(similarity, WIDTH);
        for cell in self
            .cells
            .iter_mut()
            .filter_map(|line| line.get_mut(column))
        {
            *cell = '|';
        }
        self.names.push(('|', name.into()));
    }

    /// Draws a curve with the next mark; where curves meet, the earlier one is seen.
    pub(crate) fn curve(&mut self, name: &str, probability: impl Fn(f64) -> f64) {
        let mark = MARKS.iter().cycle().nth(self.names.len()).copied();
        let mark = mark.unwrap_or('*');
        for column in 0..WIDTH {
            let similarity = column as f64 / (WIDTH - 1) as f64;
            let line = HEIGHT - 1 - rank(probability(similarity), HEIGHT);
            let cell = self
                .cells
                .get_mut(line)
                .and_then(|line| line.get_mut(column));
            if let Some(cell) = cell.filter(|cell| matches!(cell, ' ' | '|')) {
                *cell = mark;
            }
        }
        self.names.push((mark, name.into()));
    }

    /// The drawing with its axes, and what each mark stands for.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (line, cells) in self.cells.iter().enumerate() {
            let label = if line % 5 == 0 {
                format!("{:.2}", 1.0 - line as f64 / (HEIGHT - 1) as f64)
            } else {
                String::new()
            };
            let cells: String = cells.iter().collect();
            let _ = writeln!(text, "{label:>5} |{}", cells.trim_end());
        }
        let _ = writeln!(text, "      +{}", "-".repeat(WIDTH));
        let step = (WIDTH - 1) / 5;
        let labels = (0..=5).map(|fifth| format!("{:<step$}", f64::from(fifth) / 5.0));
        let labels: String = labels.collect();
        let _ = writeln!(text, "       {}", labels.trim_end());
        for (mark, name) in &self.names {
            let _ = writeln!(text, "       {mark} {name}");
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// The cell of a share among so many, from 0; the nearer end for a share outside [0, 1].
fn rank(share: f64, cells: usize) -> usize {
    let last = cells.saturating_sub(1);
    ((share.clamp(0.0, 1.0) * last as f64).round() as usize).min(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_where_they_should_be() {
        let mut plot = TextPlot::new();
        plot.upright("the threshold", 0.5);
        plot.curve("steps", |s| if s < 0.5 { 0.0 } else { 1.0 });
        plot.curve("nothing", |_| f64::NAN);
        let text = plot.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), HEIGHT + 2 + 3);
        let first = format!(" 1.00 |{}{}", " ".repeat(30), "o".repeat(31));
        assert_eq!(lines[0], first);
        assert_eq!(lines[1], format!("      |{}|", " ".repeat(30)));
        // Half a curve, then the one that was drawn after it.
        let last = format!(" 0.00 |{}{}", "o".repeat(30), "+".repeat(31));
        assert_eq!(lines[HEIGHT - 1], last);
        assert_eq!(
            lines[HEIGHT + 1],
            "       0           0.2         0.4         0.6         0.8         1"
        );
        assert_eq!(
            lines[HEIGHT + 2..],
            [
                "       | the threshold",
                "       o steps",
                "       + nothing"
            ]
        );
    }
}
