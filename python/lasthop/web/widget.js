// The page in a notebook: a frame of its own, since the page has the whole document to itself.

function render({ model, el }) {
  const frame = document.createElement("iframe");
  const address = URL.createObjectURL(new Blob([model.get("html")], { type: "text/html" }));
  frame.title = "Lasthop";
  frame.style.cssText = "width: 100%; border: 0; border-radius: 8px;";
  const resize = () => (frame.style.height = `${model.get("height")}px`);
  resize();
  frame.src = `${address}#${model.get("state")}`;
  // What the page shows: its address, and what gives the same in Python.
  const heard = ({ source, data }) => {
    if (source !== frame.contentWindow || !data?.lasthop) return;
    for (const name of ["state", "command", "toml", "results"]) model.set(name, data.lasthop[name]);
    model.save_changes();
  };
  const told = () => frame.contentWindow?.postMessage({ lasthop: { state: model.get("state") } }, "*");
  addEventListener("message", heard);
  model.on("change:state", told);
  model.on("change:height", resize);
  el.append(frame);
  return () => {
    removeEventListener("message", heard);
    model.off("change:state", told);
    model.off("change:height", resize);
    URL.revokeObjectURL(address);
  };
}

export default { render };
