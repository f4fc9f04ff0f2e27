//! What `rukh_session_plan` tells.

use serde_json::Value as Json;

/// The steps of a run and where its values are.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Bytes of the blocks of memory on the host and on the device.
    pub host_block: u64,
    pub device_block: u64,
    /// Indices of values.
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    pub steps: Vec<PlanStep>,
    pub values: Vec<PlanValue>,
}

#[derive(Clone, Debug, Default)]
pub struct PlanStep {
    pub node: String,
    pub operator: String,
    pub provider: String,
    /// What a run does for it.
    pub action: String,
    /// Indices of values.
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    pub scratch: Option<Scratch>,
}

/// Temporary memory of a step, in the block of its side.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    pub on_device: bool,
    pub offset: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub struct PlanValue {
    pub name: String,
    /// Type and shape.
    pub ty: String,
    pub on_device: bool,
    /// What the library calls where it lies.
    pub kind: String,
    /// Its part of the block, when it has one.
    pub memory: Option<Memory>,
}

/// A part of a block, and the steps between which it is needed.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub offset: u64,
    pub bytes: u64,
    pub first: usize,
    pub last: usize,
}

impl Plan {
    /// Reads the library's JSON.
    pub fn parse(text: &str) -> Result<Plan, String> {
        let json: Json = serde_json::from_str(text).map_err(|e| format!("the library's plan: {e}"))?;
        let objects = |key: &str| json[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let plan = Plan {
            host_block: number(&json["blocks"]["host"]),
            device_block: number(&json["blocks"]["device"]),
            inputs: indices(&json["inputs"]),
            outputs: indices(&json["outputs"]),
            steps: objects("steps").iter().map(step).collect(),
            values: objects("values").iter().map(value).collect(),
        };
        let all = plan.steps.iter().flat_map(|step| step.inputs.iter().chain(&step.outputs));
        match all.chain(&plan.inputs).chain(&plan.outputs).find(|&&index| index >= plan.values.len()) {
            Some(index) => Err(format!("the library's plan: value {index} is not there")),
            None => Ok(plan),
        }
    }
}

fn step(json: &Json) -> PlanStep {
    let scratch = &json["scratch"];
    PlanStep {
        node: string(&json["node"]),
        operator: string(&json["operator"]),
        provider: string(&json["provider"]),
        action: string(&json["action"]),
        inputs: indices(&json["inputs"]),
        outputs: indices(&json["outputs"]),
        scratch: scratch.is_object().then(|| Scratch {
            on_device: scratch["place"] == "device",
            offset: number(&scratch["offset"]),
            bytes: number(&scratch["bytes"]),
        }),
    }
}

fn value(json: &Json) -> PlanValue {
    let dims = json["shape"].as_array().map(|dims| {
        let texts: Vec<String> =
            dims.iter().map(|dim| dim.as_str().map_or_else(|| dim.to_string(), str::to_owned)).collect();
        format!("[{}]", texts.join(", "))
    });
    let ty = string(&json["type"]);
    // Before a run the type has its shape already.
    let ty = if ty.contains('[') { ty } else { ty + &dims.unwrap_or_default() };
    let memory = json["offset"].as_u64().map(|offset| Memory {
        offset,
        bytes: number(&json["bytes"]),
        first: number(&json["first"]) as usize,
        last: number(&json["last"]) as usize,
    });
    PlanValue {
        name: string(&json["name"]),
        ty,
        on_device: json["place"] == "device",
        kind: string(&json["memory"]),
        memory,
    }
}

fn string(json: &Json) -> String {
    json.as_str().unwrap_or_default().to_owned()
}

fn number(json: &Json) -> u64 {
    json.as_u64().unwrap_or(0)
}

fn indices(json: &Json) -> Vec<usize> {
    json.as_array().into_iter().flatten().filter_map(Json::as_u64).map(|index| index as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_librarys_text_is_read() {
        let text = r#"{"blocks":{"host":128,"device":0},"inputs":[0],"outputs":[2],"steps":[{"node":"n","operator":"Add",
            "provider":"cpu","action":"kernel","inputs":[0,null,1],"outputs":[2],
            "scratch":{"place":"host","offset":64,"bytes":8}}],"values":[
            {"name":"x","type":"float","shape":["n",4],"place":"host","memory":"input"},
            {"name":"w","type":"float","shape":null,"place":"device","memory":"constant"},
            {"name":"y","type":"float","shape":[],"place":"host","memory":"block","bytes":4,"offset":0,"first":0,"last":3}]}"#;
        let plan = Plan::parse(text).unwrap();
        assert_eq!((plan.steps[0].inputs.clone(), plan.host_block), (vec![0, 1], 128));
        assert_eq!(
            plan.steps[0].scratch.as_ref().map(|s| (s.offset, s.bytes, s.on_device)),
            Some((64, 8, false))
        );
        let types: Vec<&str> = plan.values.iter().map(|value| value.ty.as_str()).collect();
        assert_eq!(types, ["float[n, 4]", "float", "float[]"]);
        assert_eq!(plan.values[2].memory.as_ref().map(|m| (m.first, m.last)), Some((0, 3)));
        assert!(Plan::parse("{\"inputs\":[1]}").unwrap_err().contains("value 1 is not there"));
        assert!(Plan::parse("[").is_err());
    }
}
