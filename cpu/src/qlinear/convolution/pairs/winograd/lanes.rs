//! Lines of tiles, of which vectors have some in their lanes.

/// Tiles of a vector.
pub(super) const LANES: usize = 8;

/// Words of a line that so many tiles of `size` columns read, with what vectors read beyond.
pub(super) fn line_len(tiles: usize, size: usize) -> usize {
    size * (tiles.next_multiple_of(LANES) + 2)
}
