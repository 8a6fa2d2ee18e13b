// SPDX-License-Identifier: Apache-2.0
// Search where the site is read from a disk: browsers start no worker from a file, so its script runs in a hidden frame.
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    const inside = this.frame.contentWindow;
    inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    const script = inside.document.createElement("script");
    this.isReady = new Promise((resolve) => { script.onload = resolve; });
    script.src = url;
    inside.document.body.append(script);
  }

  postMessage(data) {
    const inside = this.frame.contentWindow;
    this.isReady.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") {
  window.Worker = FrameWorker;
}
