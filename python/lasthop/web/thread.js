// The simulator in threads of their own, so that the page never waits for it.

class Thread {
  constructor(bytes) {
    this.bytes = bytes;
    this.start();
  }

  start() {
    this.worker = new Worker(Thread.source);
    this.worker.postMessage({ module: this.bytes });
    // What has been asked and not been answered, in order.
    this.asked = [];
    this.worker.onmessage = ({ data }) => {
      const { resolve, reject } = this.asked.shift();
      if (data.error) reject(Object.assign(new Error(data.error.message), data.error));
      else resolve(data);
    };
  }

  // The reply to a request.
  ask(request) {
    return new Promise((resolve, reject) => {
      this.asked.push({ resolve, reject });
      this.worker.postMessage({ request });
    });
  }

  // Gives up what has been asked.
  stop() {
    if (!this.asked.length) return;
    this.worker.terminate();
    for (const { reject } of this.asked) reject(new Superseded());
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
