// Pages opened from a folder (file:) may not start workers. The search then runs in a hidden frame with the same messages.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = () => undefined;
      const script = inside.document.createElement("script");
      script.src = new URL(address, document.baseURI);
      script.onload = () => { this.ready = true; this.waiting.splice(0).forEach((data) => this.postMessage(data)); };
      inside.document.body.append(script);
    }

    postMessage(data) {
      if (!this.ready) { this.waiting.push(data); return; }
      this.frame.contentWindow.dispatchEvent(new this.frame.contentWindow.MessageEvent("message", { data }));
    }

    terminate() { this.frame.remove(); }
  };
}
