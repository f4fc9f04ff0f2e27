//! Digests of the files that an artifact was made of, which nobody can make another file for: BLAKE3 of the BLAKE3 digests
//! of the file's pieces of 1 MiB, so that several threads can compute one.

use std::sync::OnceLock;

use crate::threads::Pool;

pub(crate) type Digest = [u8; 32];

/// Bytes of a piece.
const PIECE: usize = 1 << 20;

/// The digest of bytes, on the threads of the pool.
pub(crate) fn digest(bytes: &[u8], pool: &Pool) -> Digest {
    let pieces: Vec<&[u8]> = bytes.chunks(PIECE).collect();
    let found: Vec<OnceLock<Digest>> = pieces.iter().map(|_| OnceLock::new()).collect();
    pool.split(pieces.len(), 1, |range| {
        for i in range {
            found[i].get_or_init(|| blake3::hash(pieces[i]).into());
        }
    });
    let mut whole = blake3::Hasher::new();
    for piece in found.into_iter().filter_map(OnceLock::into_inner) {
        whole.update(&piece);
    }
    whole.finalize().into()
}
