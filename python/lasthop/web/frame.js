// The page as a part of another one, such as a notebook: it says what it shows, and shows what it is told.

async function tellFrame() {
  if (parent === window) return;
  const shown = { state: toFragment(), command: command(), toml: await canonical(), results: result.reply.report };
  parent.postMessage({ lasthop: shown }, "*");
}

function listenToFrame() {
  if (parent === window) return;
  addEventListener("message", ({ source, data }) => {
    const wanted = data?.lasthop?.state;
    if (source !== parent || typeof wanted !== "string" || wanted === toFragment()) return;
    // Not by the address, which a frame of a page that was opened as a file may not change.
    fromFragment(wanted).then(changed, failed);
  });
}
