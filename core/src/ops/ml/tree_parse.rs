//! The operators of tree ensembles, and how their attributes are read, in the two ways the standard has them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::tensor::{ElementType, Tensor, bf16, f16};

use super::super::{AttributeReader, Declaration, OpError, Operator, Types};
use super::tree::{Aggregate, Child, Leaf, Test, TreeNode, Trees};
use super::{DOMAIN, Labels, NUMBERS, PostTransform};

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("TreeEnsemble", &[5], "X:T -> Y:T", &[("T", Types::FLOAT)], ensemble).domain(DOMAIN),
    Declaration::new(
        "TreeEnsembleClassifier",
        &[1, 3, 5],
        "X:T -> Y:any, Z:float",
        &[("T", NUMBERS)],
        classifier,
    )
    .domain(DOMAIN),
    Declaration::new("TreeEnsembleRegressor", &[1, 3, 5], "X:T -> Y:float", &[("T", NUMBERS)], regressor)
        .domain(DOMAIN),
];

/// TreeEnsembleClassifier.
fn classifier(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let labels = Labels::required(a, "classlabels_int64s", "classlabels_strings")?;
    let trees = by_id(a, "class", labels.len())?;
    Ok(Arc::new(Trees { labels: Some(labels), ..trees }))
}

/// TreeEnsembleRegressor.
fn regressor(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let targets = a.int("n_targets", 1)?;
    let targets = usize::try_from(targets)
        .map_err(|_| OpError::attribute("n_targets", format!("{targets} is negative")))?;
    let aggregates = [
        ("SUM", Aggregate::Sum),
        ("AVERAGE", Aggregate::Average),
        ("MIN", Aggregate::Min),
        ("MAX", Aggregate::Max),
    ];
    let aggregate = a.choice("aggregate_function", "SUM", &aggregates)?;
    Ok(Arc::new(Trees { aggregate, ..by_id(a, "target", targets)? }))
}

/// Floats that a list or a tensor gives.
fn numbers(a: &AttributeReader<'_>, name: &str) -> Result<Vec<f64>, OpError> {
    if a.opset() >= 3
        && let Some(t) = a.tensor(&format!("{name}_as_tensor"))?
    {
        a.ignore(name);
        return tensor_numbers(name, t);
    }
    Ok(a.floats(name)?.unwrap_or_default().iter().map(|&x| x as f64).collect())
}

fn tensor_numbers(name: &str, t: &Tensor) -> Result<Vec<f64>, OpError> {
    let t = t.aligned()?;
    match t.ty() {
        ElementType::F32 => Ok(t.view().slice::<f32>().iter().map(|&x| x as f64).collect()),
        ElementType::F64 => Ok(t.view().slice::<f64>().to_vec()),
        ElementType::F16 => Ok(t.view().slice::<f16>().iter().map(|x| x.to_f64()).collect()),
        ElementType::BF16 => Ok(t.view().slice::<bf16>().iter().map(|x| x.to_f64()).collect()),
        ty => Err(OpError::attribute(name, format!("its type is {ty}; floats are needed"))),
    }
}

/// A list that must have one number for each node.
fn list<'a>(a: &AttributeReader<'a>, name: &str, count: usize) -> Result<&'a [i64], OpError> {
    let list = a.ints(name)?.unwrap_or_default();
    if list.len() == count {
        return Ok(list);
    }
    Err(OpError::attribute(name, format!("it has {} numbers; {count} are needed", list.len())))
}

fn index(name: &str, i: i64, count: usize) -> Result<usize, OpError> {
    usize::try_from(i).ok().filter(|&i| i < count).ok_or_else(|| {
        OpError::attribute(name, format!("{i} is out of range; allowed are 0 to {}", count as i64 - 1))
    })
}

fn feature(i: i64) -> Result<usize, OpError> {
    usize::try_from(i).map_err(|_| OpError::attribute("nodes_featureids", format!("{i} is no column")))
}

/// The first way: nodes and the weights of leaves name tree and node by number.
fn by_id(a: &AttributeReader<'_>, kind: &str, targets: usize) -> Result<Trees, OpError> {
    let ids = a.ints("nodes_nodeids")?.unwrap_or_default();
    let count = ids.len();
    let tree_ids = list(a, "nodes_treeids", count)?;
    let features = list(a, "nodes_featureids", count)?;
    let yes = list(a, "nodes_truenodeids", count)?;
    let no = list(a, "nodes_falsenodeids", count)?;
    let modes = a.strings("nodes_modes")?.unwrap_or_default();
    let splits = numbers(a, "nodes_values")?;
    let missing = a.ints("nodes_missing_value_tracks_true")?.unwrap_or_default();
    a.ignore("nodes_hitrates");
    a.ignore("nodes_hitrates_as_tensor");
    if modes.len() != count || splits.len() != count {
        let reason = format!("{} modes and {} values for {count} nodes", modes.len(), splits.len());
        return Err(OpError::attribute("nodes_modes", reason));
    }
    // Where each (tree, node) went: to the nodes or to the leaves.
    let mut places: HashMap<(i64, i64), Child> = HashMap::new();
    let (mut node_count, mut leaf_count) = (0, 0);
    let mut roots: Vec<(i64, Child)> = Vec::new();
    for i in 0..count {
        let next = if modes[i] == "LEAF" { &mut leaf_count } else { &mut node_count };
        let place = if modes[i] == "LEAF" { Child::Leaf(*next) } else { Child::Node(*next) };
        *next += 1;
        if places.insert((tree_ids[i], ids[i]), place).is_some() {
            let reason = format!("node {} of tree {} is there twice", ids[i], tree_ids[i]);
            return Err(OpError::attribute("nodes_nodeids", reason));
        }
        // The first node of a tree is its root.
        if !roots.iter().any(|(tree, _)| *tree == tree_ids[i]) {
            roots.push((tree_ids[i], place));
        }
    }
    let find = |name: &str, tree: i64, id: i64| {
        places
            .get(&(tree, id))
            .copied()
            .ok_or_else(|| OpError::attribute(name, format!("there is no node {id} in tree {tree}")))
    };
    let mut nodes = Vec::with_capacity(node_count);
    for i in (0..count).filter(|&i| modes[i] != "LEAF") {
        nodes.push(TreeNode {
            feature: feature(features[i])?,
            test: test(modes[i], splits[i])?,
            missing_passes: missing.get(i).is_some_and(|&m| m != 0),
            yes: find("nodes_truenodeids", tree_ids[i], yes[i])?,
            no: find("nodes_falsenodeids", tree_ids[i], no[i])?,
        });
    }
    let name = |what: &str| format!("{kind}_{what}");
    let target_ids = a.ints(&name("ids"))?.unwrap_or_default();
    let target_nodes = list(a, &name("nodeids"), target_ids.len())?;
    let target_trees = list(a, &name("treeids"), target_ids.len())?;
    let weights = numbers(a, &name("weights"))?;
    if weights.len() != target_ids.len() {
        let reason = format!("it has {} numbers for {} targets", weights.len(), target_ids.len());
        return Err(OpError::attribute(&name("weights"), reason));
    }
    let mut leaves: Vec<Leaf> = vec![Vec::new(); leaf_count];
    for i in 0..target_ids.len() {
        let target = index(&name("ids"), target_ids[i], targets)?;
        // Weights of inner nodes have no meaning.
        if let Child::Leaf(leaf) = find(&name("nodeids"), target_trees[i], target_nodes[i])? {
            leaves[leaf].push((target, weights[i]));
        }
    }
    let base = numbers(a, "base_values")?;
    if !base.is_empty() && base.len() != targets && base.len() != 1 {
        return Err(OpError::attribute(
            "base_values",
            format!("it has {} numbers for {targets}", base.len()),
        ));
    }
    let roots = roots.into_iter().map(|(_, root)| root).collect();
    let post = PostTransform::read(a)?;
    Ok(Trees { nodes, leaves, roots, targets, aggregate: Aggregate::Sum, base, post, labels: None })
}

fn test(mode: &str, split: f64) -> Result<Test, OpError> {
    Ok(match mode {
        "BRANCH_LEQ" => Test::LessEqual(split),
        "BRANCH_LT" => Test::Less(split),
        "BRANCH_GTE" => Test::GreaterEqual(split),
        "BRANCH_GT" => Test::Greater(split),
        "BRANCH_EQ" => Test::Equal(split),
        "BRANCH_NEQ" => Test::NotEqual(split),
        other => {
            let allowed = "BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, BRANCH_EQ, BRANCH_NEQ, LEAF";
            return Err(OpError::attribute(
                "nodes_modes",
                format!("\"{other}\" is not known; allowed are {allowed}"),
            ));
        }
    })
}

/// TreeEnsemble: nodes and leaves are arrays of their own, and children are indices.
fn ensemble(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let required = |name: &str| OpError::attribute(name, "it is required, and missing");
    let tensor = |name: &str| a.tensor(name)?.ok_or_else(|| required(name));
    let splits = tensor_numbers("nodes_splits", tensor("nodes_splits")?)?;
    let count = splits.len();
    let modes = tensor("nodes_modes")?.aligned()?;
    if modes.ty() != ElementType::U8 || modes.len() != count {
        let reason = format!("{} of {}; {count} of uint8 are needed", modes.len(), modes.ty());
        return Err(OpError::attribute("nodes_modes", reason));
    }
    let features = list(a, "nodes_featureids", count)?;
    let children = [
        (list(a, "nodes_truenodeids", count)?, list(a, "nodes_trueleafs", count)?),
        (list(a, "nodes_falsenodeids", count)?, list(a, "nodes_falseleafs", count)?),
    ];
    let missing = a.ints("nodes_missing_value_tracks_true")?.unwrap_or_default();
    a.ignore("nodes_hitrates");
    let weights = tensor_numbers("leaf_weights", tensor("leaf_weights")?)?;
    let target_ids = list(a, "leaf_targetids", weights.len())?;
    let targets = a.int("n_targets", 1)?.max(0) as usize;
    let leaves: Vec<Leaf> = target_ids
        .iter()
        .zip(&weights)
        .map(|(&t, &w)| Ok(vec![(index("leaf_targetids", t, targets)?, w)]))
        .collect::<Result<_, OpError>>()?;
    let child = |(ids, leafs): (&[i64], &[i64]), i: usize| {
        Ok::<_, OpError>(match leafs[i] {
            0 => Child::Node(index("nodes_truenodeids", ids[i], count)?),
            _ => Child::Leaf(index("nodes_truenodeids", ids[i], leaves.len())?),
        })
    };
    let members =
        a.tensor("membership_values")?.map(|t| tensor_numbers("membership_values", t)).transpose()?;
    // The sets follow each other in the order of the nodes, each ended by NaN.
    let mut sets = members.as_deref().unwrap_or_default().split(|x| x.is_nan());
    let mut nodes = Vec::with_capacity(count);
    for (i, &mode) in modes.view().slice::<u8>().iter().enumerate() {
        let split = splits[i];
        let test = match mode {
            0 => Test::LessEqual(split),
            1 => Test::Less(split),
            2 => Test::GreaterEqual(split),
            3 => Test::Greater(split),
            4 => Test::Equal(split),
            5 => Test::NotEqual(split),
            6 => Test::Member(sets.next().ok_or_else(|| required("membership_values"))?.to_vec()),
            other => {
                return Err(OpError::attribute(
                    "nodes_modes",
                    format!("{other} is not known; allowed are 0 to 6"),
                ));
            }
        };
        nodes.push(TreeNode {
            feature: feature(features[i])?,
            test,
            missing_passes: missing.get(i).is_some_and(|&m| m != 0),
            yes: child(children[0], i)?,
            no: child(children[1], i)?,
        });
    }
    let roots = a.ints("tree_roots")?.ok_or_else(|| required("tree_roots"))?;
    let roots = roots
        .iter()
        .map(|&r| Ok(Child::Node(index("tree_roots", r, count)?)))
        .collect::<Result<_, OpError>>()?;
    let aggregates = [Aggregate::Average, Aggregate::Sum, Aggregate::Min, Aggregate::Max];
    let aggregate =
        aggregates[index("aggregate_function", a.int("aggregate_function", 1)?, aggregates.len())?];
    let posts = [
        PostTransform::None,
        PostTransform::Softmax,
        PostTransform::Logistic,
        PostTransform::SoftmaxZero,
        PostTransform::Probit,
    ];
    let post = posts[index("post_transform", a.int("post_transform", 0)?, posts.len())?];
    Ok(Arc::new(Trees { nodes, leaves, roots, targets, aggregate, base: Vec::new(), post, labels: None }))
}
