// Objects of the library, which end with `dispose` or when JavaScript no longer has them.

import { raw } from "./raw.js";
import { RukhError } from "./errors.js";
import { Status } from "./constants.js";

const forgotten = new FinalizationRegistry(({ kind, address }) => raw[`${kind}_destroy`](address));

/** The base of what stands for an object of the library. */
export class Handle {
  #kind;
  #address;
  #users = 0;
  #disposed = false;

  constructor(kind, address) {
    this.#kind = kind;
    this.#address = address;
    forgotten.register(this, { kind, address }, this);
  }

  /** The address for calls of the raw layer, valid until `dispose`. */
  get address() {
    if (this.#disposed) {
      const said = `this ${this.constructor.name} was disposed and cannot be used any more`;
      throw new RukhError(Status.INVALID_HANDLE, said);
    }
    return this.#address;
  }

  /** Whether `dispose` was called. */
  get disposed() {
    return this.#disposed;
  }

  /** Ends the object now; what still uses it goes on. Calling it again does nothing. */
  dispose() {
    if (!this.#disposed) {
      this.#disposed = true;
      this.#endIfUnused();
    }
  }

  /** Keeps the object for the time of an asynchronous call, through `dispose` and the garbage collector. */
  async useDuring(work) {
    const release = this.hold();
    try {
      return await work(this.#address);
    } finally {
      release();
    }
  }

  /** Keeps the object, through `dispose` and the garbage collector, until the function that is returned is called. */
  hold() {
    void this.address; // Refuses what was disposed.
    this.#users += 1;
    return () => {
      this.#users -= 1;
      this.#endIfUnused();
    };
  }

  #endIfUnused() {
    if (this.#disposed && this.#users === 0 && this.#address !== null) {
      forgotten.unregister(this);
      raw[`${this.#kind}_destroy`](this.#address);
      this.#address = null;
    }
  }
}

if (Symbol.dispose) {
  Handle.prototype[Symbol.dispose] = Handle.prototype.dispose;
}
