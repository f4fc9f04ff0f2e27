//! Places the nodes of a directed graph in layers from top to bottom, after Sugiyama: a layer for each node, an order in
//! each layer with few crossings, then coordinates. The same graph always gives the same picture.

/// What is to be placed: the widths and heights of nodes, and edges from earlier nodes to later ones.
pub struct Nodes<'a> {
    pub sizes: &'a [(f64, f64)],
    pub edges: &'a [(usize, usize)],
}

/// Where everything is.
pub struct Placed {
    /// The middle of each node.
    pub nodes: Vec<(f64, f64)>,
    /// For each edge the points from the lower side of one node to the upper side of the other.
    pub edges: Vec<Vec<(f64, f64)>>,
    pub width: f64,
    pub height: f64,
}

const GAP: f64 = 24.0;
const BETWEEN_LAYERS: f64 = 34.0;
const MARGIN: f64 = 20.0;
/// The width that an edge takes in a layer that it passes.
const LANE: f64 = 6.0;
/// An edge over more layers goes straight, so that a few of them do not crowd every layer.
const LONGEST: usize = 80;
const SWEEPS: usize = 6;

impl Nodes<'_> {
    pub fn place(&self) -> Placed {
        let mut net = Net::new(self);
        for sweep in 0..SWEEPS {
            net.order(sweep % 2 == 0);
        }
        let x = net.columns();
        let (tops, height) = net.rows();
        let middle = |item: usize| {
            let layer = net.items[item].layer;
            (x[item], tops[layer] + net.heights[layer] / 2.0)
        };
        let nodes: Vec<(f64, f64)> = (0..self.sizes.len()).map(middle).collect();
        let edges = self.edges.iter().zip(&net.lanes).map(|(&(from, to), lanes)| {
            let (a, b) = (nodes[from], nodes[to]);
            let mut points = vec![(a.0, a.1 + self.sizes[from].1 / 2.0)];
            points.extend(lanes.iter().map(|&item| middle(item)));
            points.push((b.0, b.1 - self.sizes[to].1 / 2.0));
            points
        });
        let edges = edges.collect();
        let right = net.items.iter().zip(&x).map(|(item, x)| x + item.width / 2.0).fold(0.0, f64::max);
        Placed { nodes, edges, width: right + MARGIN, height: height + MARGIN }
    }
}

/// A node, or the place where an edge passes a layer.
struct Item {
    layer: usize,
    width: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

struct Net {
    /// Nodes first, by their numbers.
    items: Vec<Item>,
    /// From left to right.
    layers: Vec<Vec<usize>>,
    heights: Vec<f64>,
    /// The items that each edge passes.
    lanes: Vec<Vec<usize>>,
}

impl Net {
    fn new(nodes: &Nodes<'_>) -> Net {
        let layer_of = layers(nodes);
        let mut items: Vec<Item> = nodes
            .sizes
            .iter()
            .zip(&layer_of)
            .map(|(&(width, _), &layer)| Item { layer, width, above: Vec::new(), below: Vec::new() })
            .collect();
        let mut lanes = Vec::with_capacity(nodes.edges.len());
        for &(from, to) in nodes.edges {
            let (first, last) = (items[from].layer, items[to].layer);
            let passed = if last - first <= LONGEST { first + 1..last } else { 0..0 };
            let mut own = Vec::new();
            let mut before = from;
            for layer in passed {
                let item = items.len();
                items.push(Item { layer, width: LANE, above: vec![before], below: Vec::new() });
                items[before].below.push(item);
                own.push(item);
                before = item;
            }
            if last - first <= LONGEST {
                items[before].below.push(to);
                items[to].above.push(before);
            }
            lanes.push(own);
        }
        let count = layer_of.iter().map(|layer| layer + 1).max().unwrap_or(0);
        let mut layers = vec![Vec::new(); count];
        items.iter().enumerate().for_each(|(i, item)| layers[item.layer].push(i));
        let mut heights = vec![0.0f64; count];
        nodes
            .sizes
            .iter()
            .zip(&layer_of)
            .for_each(|(size, &layer)| heights[layer] = heights[layer].max(size.1));
        Net { items, layers, heights, lanes }
    }

    /// Sorts each layer by the mean place of its neighbours in the layer before it.
    fn order(&mut self, down: bool) {
        let mut place = vec![0.0f64; self.items.len()];
        let count = self.layers.len();
        let sequence: Vec<usize> = if down { (0..count).collect() } else { (0..count).rev().collect() };
        for layer in sequence {
            let mut keyed: Vec<(f64, usize)> = self.layers[layer]
                .iter()
                .enumerate()
                .map(|(at, &item)| {
                    let neighbours = if down { &self.items[item].above } else { &self.items[item].below };
                    // One without neighbours stays where it is, as a part of its layer.
                    let own = at as f64 / self.layers[layer].len() as f64;
                    (mean(neighbours, &place).unwrap_or(own), item)
                })
                .collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            self.layers[layer] = keyed.into_iter().map(|(_, item)| item).collect();
            let size = self.layers[layer].len() as f64;
            for (at, &item) in self.layers[layer].iter().enumerate() {
                place[item] = at as f64 / size;
            }
        }
    }

    /// The middle of each item: near those of its neighbours, without overlap.
    fn columns(&self) -> Vec<f64> {
        let mut x = vec![0.0f64; self.items.len()];
        let gap = |a: usize, b: usize| {
            let thin = self.items[a].width <= LANE || self.items[b].width <= LANE;
            (self.items[a].width + self.items[b].width) / 2.0 + if thin { LANE } else { GAP }
        };
        for pass in 0..SWEEPS {
            let down = pass % 2 == 0;
            let count = self.layers.len();
            let sequence: Vec<usize> = if down { (0..count).collect() } else { (0..count).rev().collect() };
            for layer in sequence {
                let items = &self.layers[layer];
                let wanted: Vec<f64> = items
                    .iter()
                    .map(|&item| {
                        let neighbours = if down { &self.items[item].above } else { &self.items[item].below };
                        mean(neighbours, &x).unwrap_or(x[item])
                    })
                    .collect();
                let mut placed: Vec<f64> = Vec::with_capacity(items.len());
                for (i, &item) in items.iter().enumerate() {
                    let least = i.checked_sub(1).map(|before| placed[before] + gap(items[before], item));
                    placed.push(least.map_or(wanted[i], |least| least.max(wanted[i])));
                }
                // What was pushed to the right goes back by as much in the mean.
                let moved: f64 = wanted.iter().zip(&placed).map(|(wanted, placed)| wanted - placed).sum();
                let shift = moved / items.len().max(1) as f64;
                items.iter().zip(placed).for_each(|(&item, placed)| x[item] = placed + shift);
            }
        }
        let left =
            self.items.iter().zip(&x).map(|(item, x)| x - item.width / 2.0).fold(f64::INFINITY, f64::min);
        x.iter().map(|x| x - left + MARGIN).collect()
    }

    /// The top of each layer, and where the last one ends.
    fn rows(&self) -> (Vec<f64>, f64) {
        let mut y = MARGIN;
        let tops = self.heights.iter().map(|height| {
            let top = y;
            y += height + BETWEEN_LAYERS;
            top
        });
        let tops: Vec<f64> = tops.collect();
        (tops, y - BETWEEN_LAYERS)
    }
}

/// The layer of each node: below all that it depends on, and those without anything above near what uses them.
fn layers(nodes: &Nodes<'_>) -> Vec<usize> {
    let count = nodes.sizes.len();
    let mut edges = nodes.edges.to_vec();
    edges.sort_unstable();
    let mut layer = vec![0usize; count];
    for &(from, to) in &edges {
        layer[to] = layer[to].max(layer[from] + 1);
    }
    // The layer of the first user of each node, and whether anything is above it.
    let (mut first, mut fed) = (vec![None::<usize>; count], vec![false; count]);
    for &(from, to) in &edges {
        first[from] = Some(first[from].map_or(layer[to], |known| known.min(layer[to])));
        fed[to] = true;
    }
    for node in (0..count).filter(|&node| !fed[node]) {
        if let Some(first) = first[node] {
            layer[node] = first - 1;
        }
    }
    layer
}

fn mean(items: &[usize], of: &[f64]) -> Option<f64> {
    (!items.is_empty()).then(|| items.iter().map(|&item| of[item]).sum::<f64>() / items.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(count: usize, edges: &[(usize, usize)]) -> Placed {
        Nodes { sizes: &vec![(100.0, 40.0); count], edges }.place()
    }

    #[test]
    fn nodes_do_not_overlap_and_edges_go_down() {
        let mut state = 3u64;
        let mut next = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        let edges: Vec<(usize, usize)> =
            (1..200).flat_map(|to| [(next(to), to), (to - 1 - next(to.min(9)), to)]).collect();
        let picture = placed(200, &edges);
        for (i, a) in picture.nodes.iter().enumerate() {
            assert!(a.0 >= 50.0 && a.0 + 50.0 <= picture.width && a.1 + 20.0 <= picture.height);
            for b in &picture.nodes[i + 1..] {
                assert!((a.0 - b.0).abs() >= 99.9 || (a.1 - b.1).abs() >= 40.0, "{a:?} {b:?}");
            }
        }
        for (points, &(from, to)) in picture.edges.iter().zip(&edges) {
            assert!(points.windows(2).all(|pair| pair[0].1 < pair[1].1), "{points:?}");
            assert_eq!(
                (points[0].0, points[points.len() - 1].0),
                (picture.nodes[from].0, picture.nodes[to].0)
            );
        }
        let again = placed(200, &edges);
        assert_eq!((again.nodes, again.edges), (picture.nodes, picture.edges));
    }

    #[test]
    fn a_chain_is_a_column() {
        let edges: Vec<(usize, usize)> = (1..1000).map(|to| (to - 1, to)).chain([(0, 999)]).collect();
        let picture = placed(1000, &edges);
        assert!(picture.nodes.iter().all(|node| (node.0 - picture.nodes[0].0).abs() < 1.0));
        assert!(picture.width < 300.0);
        assert_eq!(placed(0, &[]).nodes.len(), 0);
    }
}
