use std::collections::BTreeMap;
fn main() {
    let mut bad: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut total = 0;
    for f in std::env::args().skip(1) {
        let bytes = std::fs::read(&f).unwrap();
        let name = f.split("-gfx").nth(1).unwrap().split('-').next().unwrap();
        let target = amdhip64::isa::Target::find(&format!("gfx{name}")).unwrap();
        use object::{Object, ObjectSection};
        let file = object::File::parse(&*bytes).unwrap();
        let text = file.section_by_name(".text").unwrap().data().unwrap().to_vec();
        let w32 = target.wave == 32;
        let mut at = 0u64;
        while (at as usize) < text.len() {
            match amdhip64::isa::decode(target, w32, &text, at) {
                Ok(i) => {
                    let size = i.size as u64;
                    total += 1;
                    if i.name != "s_code_end" {
                        if let Err(e) = amdhip64::machine::probe(&i, target) {
                            let e = bad.entry(format!("{} {:?}: {}", i.name, i.encoding, e)).or_default();
                            e.0 += 1;
                            e.1 = target.name.into();
                        }
                    }
                    at += size;
                }
                Err(e) => {
                    let e = bad
                        .entry(format!("DECODE {}", e.to_string().chars().take(150).collect::<String>()))
                        .or_default();
                    e.0 += 1;
                    e.1 = target.name.into();
                    at += 4;
                }
            }
        }
    }
    println!("{total} instructions");
    for (k, v) in bad {
        println!("{:6} {} {}", v.0, v.1, k);
    }
}
