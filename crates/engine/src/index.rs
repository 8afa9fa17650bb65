//! Session indexes: six base32 characters derived once from the place of a session (spec 03 §1.3).

use crate::{Environment, Purpose, Signer, StatePath, Workset, lineage};

/// RFC 4648 base32, upper case.
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// Characters of an index.
const LENGTH: usize = 6;

/// The place of a session: canonical path of its top folder, and the JSON path below it for an embedded one.
pub fn place(folder: &str, path: &StatePath) -> String {
    if path.0.is_empty() { folder.to_owned() } else { format!("{folder}:{}", path.text()) }
}

/// The index of a place: the first 30 bits of its MAC, most significant first.
pub fn derive(signer: &dyn Signer, place: &str) -> String {
    let mac = signer.mac(Purpose::SessionIndex, place.as_bytes());
    let bits = u32::from_be_bytes([mac[0], mac[1], mac[2], mac[3]]) >> 2;
    (0..LENGTH).rev().map(|i| char::from(ALPHABET[(bits >> (5 * i)) as usize & 31])).collect()
}

/// An index for a new session at a place; while another session holds the derived one, `:#1`, `:#2` … are appended to
/// the place. What is in `freed` was held by a session that this call replaces.
pub(crate) fn mint(env: &Environment<'_>, workset: &Workset, freed: &[String], place: &str) -> String {
    let is_freed = |index: &str| freed.iter().any(|freed| freed == index);
    mint_free(env.signer, place, &|index| holds(workset, index) || (env.registry.is_taken(index) && !is_freed(index)))
}

/// [`mint`] with the question whether an index is taken; gives up avoiding after so many tries as there can be live
/// sessions at most.
pub fn mint_free(signer: &dyn Signer, place: &str, is_taken: &dyn Fn(&str) -> bool) -> String {
    let first = derive(signer, place);
    if !is_taken(&first) {
        return first;
    }
    (1..1_u32 << 16).map(|n| derive(signer, &format!("{place}:#{n}"))).find(|index| !is_taken(index)).unwrap_or(first)
}

/// Whether a session of the call's own families holds an index.
fn holds(workset: &Workset, index: &str) -> bool {
    workset.families.iter().filter_map(|family| family.root.as_ref()).any(|root| lineage::holds(root, index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::KeySigner;

    const ALPHA: &str = "/srv/ws/.engineering/artifacts/planning/2026-07-13-alpha";

    #[track_caller]
    fn check_derived(path: &[usize], expected: &str) {
        assert_eq!(derive(&KeySigner, &place(ALPHA, &StatePath(path.to_vec()))), expected);
    }

    /// Also trap 2: an embedded index comes from the top folder's path and the JSON path, not from the parent's index.
    #[test]
    fn trap_03_14_03_the_most_significant_bits_count() {
        check_derived(&[], "NU7LON");
        check_derived(&[0], "66X3P3");
        check_derived(&[0, 1], "2KVH42");
    }

    #[test]
    fn trap_03_14_02_an_embedded_index_follows_the_top_folder() {
        let signer = KeySigner;
        let before = derive(&signer, &place(ALPHA, &StatePath(vec![0])));
        let after = derive(&signer, &place("/srv/ws/.engineering/artifacts/planning/beta", &StatePath(vec![1])));
        assert_eq!(before, "66X3P3");
        assert_ne!(before, after);
        assert_eq!(after, derive(&signer, "/srv/ws/.engineering/artifacts/planning/beta:triggeredWorkflows.1.state"));
    }

    #[test]
    fn hazard_h07_a_taken_index_is_avoided() {
        let signer = KeySigner;
        assert_eq!(mint_free(&signer, ALPHA, &|_| false), "NU7LON");
        assert_eq!(mint_free(&signer, ALPHA, &|index| index == "NU7LON"), "37UK7W");
        let third = mint_free(&signer, ALPHA, &|index| ["NU7LON", "37UK7W"].contains(&index));
        assert_eq!(third, derive(&signer, &format!("{ALPHA}:#2")));
    }
}
