// The simulator in threads of their own, so that the page never waits for it.

class Thread {
  constructor(bytes) {
    this.bytes = bytes;
    this.start();
  }

  start() {
    this.worker = new Worker(Thread.source);
    this.worker.postMessage({ module: this.bytes });
    this.waiting = null;
    this.worker.onmessage = ({ data }) => {
      const { resolve, reject } = this.waiting;
      this.waiting = null;
      if (data.error) reject(Object.assign(new Error(data.error.message), data.error));
      else resolve(data);
    };
  }

  // The reply to a request. What is still being computed for an earlier one is given up.
  ask(request) {
    if (this.waiting) this.stop();
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.worker.postMessage({ request });
    });
  }

  stop() {
    if (!this.waiting) return;
    this.worker.terminate();
    this.waiting.reject(new Superseded());
    this.start();
  }
}

class Superseded extends Error {}

async function unpacked() {
  const text = atob($("module").textContent.trim());
  const packed = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
