// As a user would: clicks the extension's status bar item, opens the notifications, reads the greeting there; and tries
// again when nothing came of it, for a click on a workbench that is still coming up may be lost.
// Returns a promise of the notification's text. Needs no element to be there yet: it watches the page.
(greeting) =>
  new Promise((done) => {
    const saying = (selector) =>
      [...document.querySelectorAll(selector)].find((element) => element.innerText.includes(greeting));
    const clicks = () => [
      () => saying('.statusbar-item a'),
      () => document.querySelector('.statusbar-item .codicon-bell-dot')?.closest('a'),
    ];
    let left = clicks();
    const look = () => {
      const target = left[0]?.();
      if (target) {
        left.shift();
        target.click();
      }
      const notification = saying('.notifications-center .notification-list-item-message');
      if (notification) {
        watch.disconnect();
        clearInterval(again);
        done(notification.innerText.trim());
      }
    };
    const watch = new MutationObserver(look);
    watch.observe(document, { attributes: true, childList: true, characterData: true, subtree: true });
    const again = setInterval(() => ((left = clicks()), look()), 5000);
    look();
  })
