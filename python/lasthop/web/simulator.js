"use strict";

// The simulator: crates/web compiled to WebAssembly. Its interface is described there.
class Simulator {
  // Returns the simulator of a compiled module.
  static async start(module) {
    return new Simulator((await WebAssembly.instantiate(module, {})).exports);
  }

  constructor(exports) {
    this.exports = exports;
  }

  // Answers a request: its document, and the numbers of its columns, which `column` picks.
  // Throws an Error with the members of the document's `error`.
  ask(request) {
    const { memory, lasthop_request, lasthop_answer, lasthop_reply, lasthop_reply_length } = this.exports;
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    const address = lasthop_request(bytes.length);
    new Uint8Array(memory.buffer, address, bytes.length).set(bytes);
    let crashed = null;
    try {
      lasthop_answer();
    } catch (trap) {
      crashed = trap;
    }
    // A copy, since the memory may move, and since columns begin at multiples of eight bytes.
    const reply = memory.buffer.slice(lasthop_reply(), lasthop_reply() + lasthop_reply_length());
    if (reply.byteLength < 4) throw crashed ?? new Error("the simulator gave no reply");
    const length = new DataView(reply).getUint32(0, true);
    const document = JSON.parse(new TextDecoder().decode(new Uint8Array(reply, 4, length)));
    if (document.error) {
      throw Object.assign(new Error(document.error.message), document.error, { crashed: crashed !== null });
    }
    return { document, columns: new Float64Array(reply, 4 + length) };
  }
}

// The numbers of a column, of which `place` says where they are.
function column(columns, place) {
  return columns.subarray(place.first, place.first + place.length);
}
