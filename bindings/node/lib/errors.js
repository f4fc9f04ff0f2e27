// The exceptions of the package.

import { Status } from "./constants.js";

const NAMES = new Map(Object.entries(Status).map(([name, status]) => [status, name]));

/** What the library refused or failed at. `code` names the kind of failure, `status` is its number. */
export class RukhError extends Error {
  constructor(status, message) {
    super(message);
    this.name = "RukhError";
    this.status = status;
    // A later library may know kinds of failures that this package does not.
    this.code = NAMES.has(status) ? `RUKH_ERROR_${NAMES.get(status)}` : `RUKH_ERROR_${status}`;
  }
}
