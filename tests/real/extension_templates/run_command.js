// Run in the page of a VS Code workbench: opens the command palette, runs `Hello World`, and gives what the extension says.
(async () => {
  const until = (find) =>
    new Promise((done) => {
      const look = () => {
        const found = find();
        if (found) {
          watch.disconnect();
          done(found);
        }
      };
      const watch = new MutationObserver(look);
      watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
      look();
    });
  const press = (target, key, keyCode) =>
    target.dispatchEvent(
      new KeyboardEvent("keydown", { key, code: key, keyCode, which: keyCode, bubbles: true, cancelable: true }),
    );
  const all = (selector) => [...document.querySelectorAll(selector)];
  await window.driver.whenWorkbenchRestored();
  press(document.body, "F1", 112);
  const input = await until(() => all(".quick-input-widget input.input").find((it) => it.offsetParent));
  input.focus();
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const row = () => all(".quick-input-list .monaco-list-row.focused").find((row) => row.textContent.includes("Hello World"));
  // The palette closes when it runs a command. An Enter while it looks for its rows is ignored.
  while (input.offsetParent) {
    // Nothing tells when the commands of an extension have come: the palette is asked again and again.
    while (!row()) {
      for (const value of [">Hello Worl", ">Hello World"]) {
        input.value = value;
        input.dispatchEvent(new Event("input", { bubbles: true }));
      }
      await pause(100);
    }
    // What the extension said before.
    all(".monaco-aria-container *").forEach((it) => { it.textContent = ""; });
    press(input, "Enter", 13);
    await Promise.race([until(() => !input.offsetParent), pause(2_000)]);
  }
  // What is said to a screen reader; the toast itself is shown to a window that has the focus only.
  const said = await until(() => all(".monaco-aria-container *").find((it) => it.textContent.includes("Hello Tether")));
  return said.textContent;
})()
