//! docs/operators.md is what the declarations and the providers' tables say. `RUKH_UPDATE=1 cargo test
//! --lib documentation` writes it anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::ops::{Declaration, Types, declarations};
use crate::tensor::{ElementType, ValueType};

use super::super::{cpu, hip};

/// Operators that the session runs itself, over nested graphs.
const BY_SESSION: &[&str] = &["If", "Loop", "Scan", "SequenceMap", "BeamSearch", "GreedySearch", "Sampling"];

/// Operators in whose place a pass puts those that they stand for.
const REWRITTEN: &[&str] = &["DynamicQuantizeLSTM", "FlexAttention", "LinearAttentionGate"];

/// Remarks by domain and operator. Each must name an operator that is declared.
const NOTES: &[(&str, &str, &str)] = &[
    ("", "Attention", "values of another type than queries and keys are brought into theirs"),
    ("", "Bernoulli", "the numbers drawn are this library's own; their distribution is the standard's"),
    ("", "Cast", "a NaN becomes −0 in types without NaN"),
    ("", "Col2Im", "not for bool and string elements"),
    ("", "GridSample", "not for bool, string and complex elements"),
    ("", "ImageDecoder", "pixels of JPEG files may differ by rounding from other decoders'"),
    ("", "Multinomial", "the numbers drawn are this library's own; their distribution is the standard's"),
    ("", "RandomNormal", "the numbers drawn are this library's own; their distribution is the standard's"),
    (
        "",
        "RandomNormalLike",
        "the numbers drawn are this library's own; their distribution is the standard's",
    ),
    ("", "RandomUniform", "the numbers drawn are this library's own; their distribution is the standard's"),
    (
        "",
        "RandomUniformLike",
        "the numbers drawn are this library's own; their distribution is the standard's",
    ),
    ("com.microsoft", "Attention", "without `do_rotary`"),
    ("com.microsoft", "BeamSearch", "`model_type` 0 and 1; without the outputs of Whisper"),
    (
        "com.microsoft",
        "GroupQueryAttention",
        "`sliding_window_cache` without `attention_bias` and `qk_output`",
    ),
    (
        "com.microsoft",
        "MatMulBlockQuantizedFp4Weight",
        "on GPUs with a `block_size` that is a power of two from 16 on; `input_scale` changes nothing",
    ),
    ("com.microsoft", "MatMulBnb4", "`transB` 1"),
    (
        "com.microsoft",
        "PagedAttention",
        "caches are of the queries' type (`k_quant_type`, `v_quant_type` NONE), with blocks of any size; new rows are in \
         the outputs, which may be bound to the memory of the inputs",
    ),
    ("com.microsoft", "SparseAttention", "past and present may be two buffers, which costs a copy"),
    (
        "com.microsoft",
        "MatMulNBits",
        "without `weight_prepacked`; the CPU may round `A` block by block: with `accuracy_level` 4 to 8 bits, with 1 not at all, \
         otherwise to 16 bits",
    ),
    ("com.microsoft", "MoE", "without `use_sparse_mixer`"),
    ("com.microsoft", "QAttention", "in float; without `do_rotary`, `past_present_share_buffer`"),
    ("com.microsoft", "QMoE", "`quant_type` int; without `use_sparse_mixer`"),
    ("com.microsoft", "Sampling", "the numbers drawn are this library's own"),
    ("com.microsoft", "SparseToDenseMatMul", "the sparse tensor is given as a dense one"),
    (
        "rukh",
        "Attention",
        "made by fusions: ai.onnx's, where a mask of one column stands for all keys, and heads may lie within wider matrices",
    ),
    ("rukh", "ConvPair", "made by fusions: a pointwise FusedConv and a depthwise one of its outputs"),
    ("rukh", "FusedConv", "made by passes: com.microsoft's, of images whose channels lie two in a word"),
    ("rukh", "GatedUnit", "made by fusions: one half of the columns times a function of the other half"),
    ("rukh", "GlobalAveragePool", "made by passes: ai.onnx's, of an image whose channels lie two in a word"),
    ("rukh", "Lookup", "made by fusions: what is computed of each byte of a tensor, as a table"),
    ("rukh", "MatMul", "made by fusions: FusedMatMul with a bias, a residual and an activation"),
    ("rukh", "NhwcAveragePool", "made by passes: ai.onnx's, of an image with its channels innermost"),
    (
        "rukh",
        "NhwcConv",
        "made by passes: com.microsoft's FusedConv, of images with their channels innermost",
    ),
    (
        "rukh",
        "NhwcExcite",
        "made by passes: an image with its channels innermost times a gate of each channel, which a product makes",
    ),
    ("rukh", "NhwcGroupNormalization", "made by passes: ai.onnx's, of an image with its channels innermost"),
    ("rukh", "NhwcMaxPool", "made by passes: ai.onnx's, of an image with its channels innermost"),
    (
        "rukh",
        "NhwcSpaceToDepth",
        "made by passes: blocks of an image as pixels with their channels innermost, for a model's first convolution",
    ),
    (
        "rukh",
        "PackedProjection",
        "made by fusions: com.microsoft's MatMulNBits with an RMS normalisation before it and a gated unit behind it",
    ),
    (
        "rukh",
        "PermutedLayerNormalization",
        "made by fusions: com.microsoft's SkipLayerNormalization, of inputs with their rows at other places",
    ),
    (
        "rukh",
        "Projection",
        "made by fusions: rukh's MatMul with an RMS normalisation before it and a gated unit behind it",
    ),
    (
        "rukh",
        "QLinearConv",
        "made by fusions: ai.onnx's, whose outputs QLinearAdd adds to a residual; of images whose channels lie four in a word",
    ),
    (
        "rukh",
        "QLinearGlobalAveragePool",
        "made by passes: com.microsoft's, of an image whose channels lie four in a word",
    ),
    ("rukh", "ReduceSum", "made by fusions: ai.onnx's of integers, plus a constant, as another type"),
    (
        "rukh",
        "RotaryEmbedding",
        "made by fusions: of heads within wider matrices, where both halves of a head share their cosines and sines",
    ),
];

/// Operators of the standard that are not there, and why.
const ABSENT: &[(&str, &str, &str)] = &[(
    "ai.onnx.preview.training",
    "Gradient",
    "it differentiates a graph, which a library that runs graphs as they are does not do; the standard's \
     cases `test_gradient_of_add` and `test_gradient_of_add_and_mul` fail for it",
)];

#[test]
fn the_page_is_up_to_date() {
    let text = page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operators.md");
    if std::env::var_os("RUKH_UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == text,
        "docs/operators.md is not what the declarations say; write it anew with RUKH_UPDATE=1 cargo test --lib \
         documentation"
    );
}

#[test]
fn every_note_has_its_operator() {
    for (domain, name, _) in NOTES {
        assert!(declarations().any(|d| d.domain == *domain && d.name == *name), "{domain} {name}");
    }
    for (domain, name, _) in ABSENT {
        assert!(!declarations().any(|d| d.domain == *domain && d.name == *name), "{domain} {name}");
    }
    for (domain, name) in cpu::names().chain(hip::operators()) {
        let declared = declarations().any(|d| (d.domain, d.name) == (domain, name));
        assert!(declared, "{domain} {name} has a kernel and no declaration");
    }
}

fn page() -> String {
    let mut domains: BTreeMap<&str, Vec<&Declaration>> = BTreeMap::new();
    for declaration in declarations() {
        let domain = if declaration.domain.is_empty() { "ai.onnx" } else { declaration.domain };
        domains.entry(domain).or_default().push(declaration);
    }
    let mut page = String::from(
        "# Operators\n\n\
         <!-- Made from the source by `RUKH_UPDATE=1 cargo test --lib documentation`; a test compares. -->\n\n\
         What the library runs, by domain. The versions are those in which an operator appeared or changed; an\n\
         operator keeps its meaning up to the next one, and the newest operator set is 28. In a signature `?`\n\
         marks what may be left out, `*` any number and `+` one or more; a type is a variable, an element type,\n\
         `seq(…)`, `opt(…)`, or `any`. Types are those of all versions together; a version may allow fewer.\n\
         An operator runs on a provider (cpu, hip; hip may have it for fewer types, and leaves the others to\n\
         cpu), or in the session, which runs nested graphs, or is rewritten to the operators that it stands for.\n\n\
         Sets of types:\n\n",
    );
    for (name, types) in sets() {
        let _ = writeln!(page, "* *{name}*: {types}");
    }
    for (domain, mut declarations) in domains {
        declarations.sort_by_key(|d| d.name);
        let _ = writeln!(page, "\n## {domain}\n\n{} operators.\n", declarations.len());
        page.push_str("| operator | versions | inputs and outputs | types | runs on | notes |\n");
        page.push_str("|---|---|---|---|---|---|\n");
        for d in declarations {
            let _ = writeln!(page, "{}", row(d));
        }
    }
    page.push_str("\n## Not there\n\n");
    for (domain, name, reason) in ABSENT {
        let _ = writeln!(page, "* {domain}.{name}: {reason}.");
    }
    page
}

fn row(d: &Declaration) -> String {
    let versions: Vec<String> = d.since.iter().map(i64::to_string).collect();
    let types: Vec<String> =
        d.types.iter().map(|(name, types)| format!("{name}: {}", describe(*types))).collect();
    let operator = (d.domain, d.name);
    let provider = match (cpu::names().any(|o| o == operator), hip::operators().any(|o| o == operator)) {
        _ if BY_SESSION.contains(&d.name) => "session",
        _ if REWRITTEN.contains(&d.name) => "rewritten",
        (true, true) => "cpu, hip",
        (true, false) => "cpu",
        (false, true) => "hip",
        (false, false) => "nothing",
    };
    let notes: Vec<&str> = NOTES.iter().filter(|n| (n.0, n.1) == (d.domain, d.name)).map(|n| n.2).collect();
    format!(
        "| {} | {} | `{}` | {} | {provider} | {} |",
        d.name,
        versions.join(", "),
        d.signature.split_whitespace().collect::<Vec<_>>().join(" "),
        types.join("; "),
        notes.join("; ")
    )
}

/// Sets that have a name, the larger ones first.
fn sets() -> [(&'static str, Types); 9] {
    [
        ("any value", Types::VALUE),
        ("any tensor", Types::TENSOR),
        ("numbers", Types::NUMERIC),
        ("floats", Types::FLOAT),
        ("integers", Types::INTEGER),
        ("8-bit floats", Types::FLOAT8),
        ("6-bit floats", Types::FLOAT6),
        ("narrow types", Types::NARROW),
        ("complex numbers", Types::COMPLEX),
    ]
}

/// A set of types by the named sets inside it, and the types that are left.
fn describe(types: Types) -> String {
    let members = |set: Types| ElementType::all().filter(move |&ty| set.contains(&ValueType::Tensor(ty)));
    if types == Types::VALUE {
        return "*any value*".to_owned();
    }
    let mut rest: Vec<ElementType> = members(types).collect();
    let mut parts = Vec::new();
    for (name, set) in sets().into_iter().skip(1) {
        if members(set).all(|ty| rest.contains(&ty)) {
            parts.push(format!("*{name}*"));
            rest.retain(|ty| !set.contains(&ValueType::Tensor(*ty)));
        }
    }
    parts.extend(rest.iter().map(|ty| ty.name().to_owned()));
    parts.join(", ")
}
