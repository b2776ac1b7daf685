// Answers the page's requests, one after the other, in a thread of its own. Simulator stands before this.

// A module never gives memory back.
const MEMORY_KEPT = 256 * 1024 * 1024;

let compiled = null;
let simulator = null;

async function start(module) {
  compiled = await WebAssembly.compile(module);
  simulator = await Simulator.start(compiled);
}

let turn = Promise.resolve();

onmessage = ({ data }) => {
  turn = turn.then(() => (data.module ? start(data.module) : answer(data.request)));
  turn = turn.catch((error) => postMessage({ error: { message: String(error) } }));
};

async function restart() {
  simulator = await Simulator.start(compiled);
}

async function answer(request) {
  const began = performance.now();
  try {
    const { document, columns } = simulator.ask(request);
    postMessage({ document, columns, milliseconds: performance.now() - began }, [columns.buffer]);
  } catch (error) {
    const { message, text, line, option } = error;
    postMessage({ error: { message, text, line, option } });
    if (error.crashed) await restart();
  }
  if (simulator.exports.memory.buffer.byteLength > MEMORY_KEPT) await restart();
}
