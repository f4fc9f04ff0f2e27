// Uses what the package declares as programs do; compiled, not run.

import { Adapter, Environment, RukhError, Session, Tensor, libraryVersion, type Value } from "rukh";
import { ElementType, Status } from "rukh/constants";
import { raw, type Out } from "rukh/raw";

export async function classify(pixels: Float32Array, signal: AbortSignal): Promise<number[]> {
  const environment = new Environment({ options: { threads: 2 }, log: (level, text) => console.log(level, text) });
  const session = await Session.open("digits.onnx", { environment, providers: ["hip", { name: "cpu" }] });
  using image = new Tensor(pixels, [1, 1, 8, 8]);
  using adapter = Adapter.open("digits.onnx_adapter");
  try {
    const found: Record<string, Value> = await session.run({ image }, { outputs: ["scores"], signal, adapters: [adapter] });
    const scores = found.scores;
    if (!(scores instanceof Tensor) || !(scores.data instanceof Float32Array)) {
      throw new Error(`${session.outputs[0].type} of ${libraryVersion()}`);
    }
    return Array.from(scores.data);
  } catch (error) {
    if (error instanceof RukhError && error.status === Status.CANCELLED) {
      return [];
    }
    throw error;
  } finally {
    session.dispose();
  }
}

export function kindOf(tensor: Tensor): boolean {
  const element: Out<number> = [0];
  raw.value_element_type(tensor.address, element);
  return element[0] === ElementType.FLOAT;
}

export const half = new Tensor("float16", [0x3c00], [1n]);
// @ts-expect-error: element types are named as ONNX names them.
export const wrong = () => new Tensor("float32", [1], [1]);
// @ts-expect-error: `Session.open` makes sessions.
export const closed = () => new Session(1n);
