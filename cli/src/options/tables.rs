//! The option --tables.

use std::str::FromStr;

/// Groups of permuted tables: "5,2", or several as "3,2+2,2+2,2".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableGroups(pub(crate) Vec<(u8, u8)>);

impl FromStr for TableGroups {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let group = |group: &str| {
            let (blocks, leading) = group.trim().split_once(',')?;
            Some((blocks.trim().parse().ok()?, leading.trim().parse().ok()?))
        };
        let groups: Option<Vec<(u8, u8)>> = text.split('+').map(group).collect();
        let expected = "expected groups of blocks and leading blocks, such as 5,2 or 3,2+2,2+2,2";
        groups.map(Self).ok_or_else(|| expected.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read() {
        assert_eq!("5,2".parse(), Ok(TableGroups(vec![(5, 2)])));
        let several = TableGroups(vec![(3, 2), (2, 2), (2, 2)]);
        assert_eq!("3,2 + 2,2+2, 2".parse(), Ok(several));
        for wrong in ["", "5", "5,2,1", "5,2+", "a,b", "300,2"] {
            assert!(wrong.parse::<TableGroups>().is_err(), "{wrong}");
        }
    }
}
