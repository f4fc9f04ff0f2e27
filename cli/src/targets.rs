//! The names of GPUs: machine codes, and the families, chips and products that have them.

/// One machine code and everything that is called by it.
#[derive(Debug)]
pub struct Target {
    /// LLVM's name.
    pub name: &'static str,
    /// The architecture's name.
    pub family: &'static str,
    /// The code names of the chips.
    pub chips: &'static [&'static str],
    pub products: &'static [&'static str],
}

const fn target(
    name: &'static str,
    family: &'static str,
    chips: &'static [&'static str],
    products: &'static [&'static str],
) -> Target {
    Target { name, family, chips, products }
}

/// The machine codes that the library knows. Machine codes and families are those of LLVM's AMDGPU usage guide;
/// the tests hold the products to those that IREE knows, the others were not compared with a list.
pub const TARGETS: [Target; 16] = [
    target("gfx906", "gcn5", &["vega20"], &["mi50", "mi60", "radeonvii"]),
    target("gfx908", "cdna1", &["arcturus"], &["mi100"]),
    target("gfx90a", "cdna2", &["aldebaran"], &["mi210", "mi250", "mi250x"]),
    target("gfx942", "cdna3", &["aquavanjaram"], &["mi300a", "mi300x", "mi308x", "mi325x"]),
    target("gfx950", "cdna4", &[], &["mi350x", "mi355x"]),
    target("gfx1030", "rdna2", &["navi21"], &["v620", "w6800", "rx6800", "rx6800xt", "rx6900xt", "rx6950xt"]),
    target("gfx1100", "rdna3", &["navi31"], &["w7800", "w7900", "rx7900gre", "rx7900xt", "rx7900xtx"]),
    target("gfx1101", "rdna3", &["navi32"], &["v710", "w7700", "rx7700xt", "rx7800xt"]),
    target("gfx1102", "rdna3", &["navi33"], &["w7500", "w7600", "rx7600", "rx7600xt"]),
    target("gfx1150", "rdna3.5", &["strixpoint"], &["880m", "890m"]),
    target("gfx1151", "rdna3.5", &["strixhalo"], &["8050s", "8060s"]),
    target("gfx1200", "rdna4", &["navi44"], &["rx9060xt"]),
    target("gfx1201", "rdna4", &["navi48"], &["r9070", "r9700", "rx9070", "rx9070gre", "rx9070xt"]),
    target("sm_70", "volta", &["gv100"], &["v100"]),
    target("sm_80", "ampere", &["ga100"], &["a30", "a100"]),
    target("sm_90", "hopper", &["gh100"], &["h100", "h200", "gh200"]),
];

/// Words before the names of products that tell nothing apart.
const MAKERS: [&str; 6] = ["amd", "nvidia", "radeon", "instinct", "pro", "ai"];

/// The targets that `name` stands for: a machine code, with or without features, a family, a chip or a product.
/// Case, spaces, "-" and "_" do not count.
pub fn resolve(name: &str) -> Result<Vec<&'static Target>, String> {
    let wanted = plain(name);
    let found: Vec<_> =
        TARGETS.iter().filter(|target| target.names().any(|known| plain(known) == wanted)).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let mut near: Vec<(usize, &str)> = TARGETS
        .iter()
        .flat_map(Target::names)
        .map(|known| (strsim::damerau_levenshtein(&plain(known), &wanted), known))
        .collect();
    near.sort();
    near.dedup();
    let nearest: Vec<&str> = near.iter().take(4).map(|(_, known)| *known).collect();
    Err(format!(
        "no target is called \"{name}\"; the nearest names are {}; `rukh targets` lists all",
        nearest.join(", ")
    ))
}

impl Target {
    /// Every name by which the target is found.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let own = [self.name, self.family].into_iter();
        own.chain(self.chips.iter().copied()).chain(self.products.iter().copied())
    }

    /// The kernels that a GPU of this target would run, of those that were `built`: its own, and on NVIDIA those of the
    /// highest earlier target.
    pub fn kernels<'a>(&self, built: &'a [String]) -> Option<&'a str> {
        let number = |name: &str| name.strip_prefix("sm_").and_then(|n| n.parse::<u32>().ok());
        let found = match number(self.name) {
            None => built.iter().find(|name| *name == self.name),
            Some(own) => built
                .iter()
                .filter(|name| number(name).is_some_and(|n| n <= own))
                .max_by_key(|name| number(name)),
        };
        found.map(String::as_str)
    }
}

/// A name as it is compared. Features after ":" belong to a device, not to the name.
fn plain(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(':').next().unwrap_or("").split([' ', '-', '_']);
    words.filter(|word| !MAKERS.contains(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IREE's table of products: name, machine code, family.
    const IREE: [(&str, &str, &str); 19] = [
        ("mi100", "gfx908", "cdna1"),
        ("mi210", "gfx90a", "cdna2"),
        ("mi250", "gfx90a", "cdna2"),
        ("mi300a", "gfx942", "cdna3"),
        ("mi300x", "gfx942", "cdna3"),
        ("mi308x", "gfx942", "cdna3"),
        ("mi325x", "gfx942", "cdna3"),
        ("v710", "gfx1101", "rdna3"),
        ("w7700", "gfx1101", "rdna3"),
        ("w7800", "gfx1100", "rdna3"),
        ("w7900", "gfx1100", "rdna3"),
        ("rx7700xt", "gfx1101", "rdna3"),
        ("rx7800xt", "gfx1101", "rdna3"),
        ("rx7900xt", "gfx1100", "rdna3"),
        ("rx7900xtx", "gfx1100", "rdna3"),
        ("rx9060xt", "gfx1200", "rdna4"),
        ("rx9070", "gfx1201", "rdna4"),
        ("rx9070xt", "gfx1201", "rdna4"),
        ("r9070", "gfx1201", "rdna4"),
    ];

    #[test]
    fn every_product_of_iree_is_known_both_ways() {
        for (product, code, family) in IREE {
            let found = resolve(product).unwrap();
            assert_eq!(found.iter().map(|t| (t.name, t.family)).collect::<Vec<_>>(), [(code, family)]);
            assert!(resolve(code).unwrap()[0].products.contains(&product), "{product}");
            assert!(resolve(family).unwrap().iter().any(|t| t.name == code), "{family}");
        }
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        for (name, code) in [
            ("MI300X", "gfx942"),
            ("AMD Instinct MI250", "gfx90a"),
            ("AMD Radeon RX 7900 XTX", "gfx1100"),
            ("AMD AI PRO R9070", "gfx1201"),
            ("gfx942:sramecc+:xnack-", "gfx942"),
            ("Navi 31", "gfx1100"),
            ("sm90", "sm_90"),
        ] {
            assert_eq!(resolve(name).unwrap()[0].name, code, "{name}");
        }
        let error = resolve("mi300y").unwrap_err();
        assert!(error.contains("\"mi300y\"") && error.contains("mi300x"), "{error}");
    }

    #[test]
    fn a_product_or_chip_has_one_target() {
        for name in TARGETS.iter().flat_map(|t| t.products.iter().chain(t.chips)) {
            assert_eq!(resolve(name).unwrap().len(), 1, "{name}");
        }
    }

    /// The library's own table is not public; its text tells which machine codes it has.
    #[test]
    fn the_library_and_the_command_know_the_same_targets() {
        let library = include_str!("../../src/hip/targets.rs");
        let theirs: Vec<&str> =
            library.lines().filter_map(|line| line.trim().strip_prefix("(\"")?.split('"').next()).collect();
        assert_eq!(theirs, TARGETS.iter().map(|t| t.name).collect::<Vec<_>>());
    }

    #[test]
    fn kernels_of_nvidia_serve_later_targets() {
        let built = ["gfx942".to_owned(), "sm_70".to_owned(), "sm_80".to_owned()];
        for (name, kernels) in [("sm_90", Some("sm_80")), ("gfx942", Some("gfx942")), ("gfx950", None)] {
            assert_eq!(resolve(name).unwrap()[0].kernels(&built), kernels, "{name}");
        }
    }
}
