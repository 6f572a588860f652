// Script injected into each frame of a page, in an isolated world: lists the elements, locates them, and checks whether
// they can be acted on. The page can neither see this world nor change it.
//
// Elements are identified by small numbers, unique within the document. The Rust side maps them to refs. Elements are
// held weakly: one that the page drops is collected.
(() => {
  if (globalThis.tether) return;

  const numbers = new WeakMap();
  const elements = new Map();
  const collected = new FinalizationRegistry((number) => elements.delete(number));
  let last = 0;

  function numberOf(element) {
    let number = numbers.get(element);
    if (!number) {
      number = ++last;
      numbers.set(element, number);
      elements.set(number, new WeakRef(element));
      collected.register(element, number);
    }
    return number;
  }

  function elementOf(number) {
    const element = elements.get(number)?.deref();
    return element?.isConnected ? element : null;
  }

  // ---- roles -------------------------------------------------------------------------------------------------------

  const SKIPPED = new Set(['script', 'style', 'template', 'noscript', 'head', 'link', 'meta', 'title', 'base',
    'param', 'source', 'track', 'datalist', 'col', 'colgroup']);
  const INLINE = new Set(['span', 'a', 'b', 'i', 'em', 'strong', 'code', 'small', 'sub', 'sup', 'u', 's', 'mark',
    'abbr', 'cite', 'q', 'time', 'font', 'kbd', 'samp', 'var', 'bdi', 'bdo', 'wbr', 'ins', 'del', 'label', 'dfn',
    'data', 'slot', 'big', 'tt']);
  const INPUTS = { button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox',
    radio: 'radio', range: 'slider', number: 'spinbutton', search: 'searchbox', hidden: '', file: 'file',
    color: 'color', date: 'date', 'datetime-local': 'datetime', month: 'month', week: 'week', time: 'time' };
  const TAGS = { article: 'article', aside: 'complementary', button: 'button', dd: 'definition', details: 'group',
    dialog: 'dialog', dt: 'term', fieldset: 'group', figure: 'figure', h1: 'heading', h2: 'heading', h3: 'heading',
    h4: 'heading', h5: 'heading', h6: 'heading', hr: 'separator', li: 'listitem', main: 'main', menu: 'list',
    meter: 'meter', nav: 'navigation', ol: 'list', optgroup: 'group', option: 'option', output: 'status',
    progress: 'progressbar', search: 'search', summary: 'summary', table: 'table', td: 'cell', textarea: 'textbox',
    th: 'columnheader', tr: 'row', ul: 'list', video: 'video', audio: 'audio', iframe: 'iframe', frame: 'iframe',
    canvas: 'canvas', embed: 'embed', object: 'embed', portal: 'embed', math: 'math', frameset: '' };

  // Named by their content, unless an attribute names them.
  const NAMED_BY_CONTENT = new Set(['button', 'cell', 'checkbox', 'columnheader', 'gridcell', 'heading', 'link',
    'menuitem', 'menuitemcheckbox', 'menuitemradio', 'option', 'radio', 'rowheader', 'summary', 'switch', 'tab', 'term',
    'tooltip', 'treeitem', 'clickable']);
  // Their content is decoration, except for elements that can be acted on.
  const DRAWN = new Set(['button', 'checkbox', 'img', 'menuitemcheckbox', 'menuitemradio', 'meter', 'option',
    'progressbar', 'radio', 'scrollbar', 'separator', 'slider', 'switch', 'tab', 'clickable']);
  const ACTED_ON = new Set(['button', 'checkbox', 'clickable', 'combobox', 'link', 'listbox', 'menuitem',
    'menuitemcheckbox', 'menuitemradio', 'option', 'radio', 'searchbox', 'slider', 'spinbutton', 'summary', 'switch',
    'tab', 'textbox', 'treeitem', 'file', 'color', 'date', 'datetime', 'month', 'week', 'time', 'video', 'audio',
    'canvas', 'embed', 'iframe', 'scrollbar']);
  // Omitted when they have no name and contain a single element.
  const FRAMES = new Set(['group', 'listitem', 'list', 'cell', 'gridcell', 'row', 'region', 'figure', 'article',
    'tabpanel', 'banner', 'contentinfo', 'complementary', 'form', 'note', 'radiogroup']);
  // Roles that only lay out their content.
  const PLAIN = new Set(['presentation', 'none', 'generic', 'paragraph', 'text', 'strong', 'emphasis', 'code', 'time',
    'mark', 'insertion', 'deletion', 'subscript', 'superscript', 'rowgroup', 'caption', 'blockquote', 'application',
    'document', 'menubar', 'tablist', 'toolbar']);

  const ROLE = /^\s*([a-z][a-z-]{0,30})(?:\s|$)/i;

  function roleOf(element, tag) {
    // The only attribute that is printed without quotes: a word, and a short one.
    const role = ROLE.exec(element.getAttribute('role') ?? '')?.[1].toLowerCase();
    if (role) return PLAIN.has(role) ? '' : role;
    switch (tag) {
      case 'a': case 'area': return element.hasAttribute('href') ? 'link' : '';
      case 'input': return INPUTS[element.type] ?? (element.hasAttribute('list') ? 'combobox' : 'textbox');
      case 'select': return element.multiple || element.size > 1 ? 'listbox' : 'combobox';
      case 'img': return element.getAttribute('alt') === '' ? '' : 'img';
      case 'svg': return element.hasAttribute('aria-label') || element.querySelector(':scope > title') ? 'img' : '';
      case 'section': return element.hasAttribute('aria-label') || element.hasAttribute('aria-labelledby') ? 'region' : '';
      case 'form': return element.hasAttribute('aria-label') || element.hasAttribute('aria-labelledby') ? 'form' : '';
      case 'header': return isLandmark(element) ? 'banner' : '';
      case 'footer': return isLandmark(element) ? 'contentinfo' : '';
      default: return TAGS[tag] ?? (isEditable(element) ? 'textbox' : '');
    }
  }

  const isLandmark = (element) => !element.parentElement?.closest('article, aside, main, nav, section');

  // The root of an editable region, not its descendants.
  const isEditable = (element) => element.isContentEditable && element.hasAttribute('contenteditable');

  const BETTER = 'a[href], button, input, select, textarea, summary, [onclick], [role=button], [role=link], [role=tab], '
    + '[role=checkbox], [role=menuitem], [role=option], [role=radio], [role=switch], [role=treeitem], [tabindex="0"]';

  // An element without a role that handles clicks.
  function isClickable(element) {
    if (element.hasAttribute('onclick')) return true;
    const tabindex = element.getAttribute('tabindex');
    if (tabindex !== null && tabindex >= 0) return true;
    // `cursor` is inherited: it counts only on the outermost element, and only without a better candidate inside.
    return element.parentElement !== null && getComputedStyle(element).cursor === 'pointer'
      && getComputedStyle(element.parentElement).cursor !== 'pointer' && !element.querySelector(BETTER);
  }

  // ---- names and states --------------------------------------------------------------------------------------------

  const LONGEST = 400;
  // Icon fonts use private-use characters, which are unreadable as text.
  const SYMBOLS = /[\uE000-\uF8FF\u200B\u00AD]/g;

  function cleanText(text) {
    text = text.replace(SYMBOLS, '').replace(/\s+/g, ' ').trim();
    return shorten(text, LONGEST);
  }

  const shorten = (text, most) => text.length > most ? text.slice(0, most) + '…' : text;

  // Characters that end a line, hide, or turn the direction of text; JSON escapes only those below U+0020.
  const DECEPTIVE = /[\u007F-\u009F\u061C\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB]/g;

  function quote(text) {
    return JSON.stringify(text).replace(DECEPTIVE, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`);
  }

  function labelledByText(element, attribute) {
    const ids = element.getAttribute(attribute);
    if (!ids) return '';
    const root = element.getRootNode();
    return ids.trim().split(/\s+/).map((id) => {
      const other = root.getElementById?.(id);
      return other ? other.getAttribute('aria-label') || textContent(other) : '';
    }).join(' ');
  }

  function textContent(element, length = { left: LONGEST * 2 }) {
    let text = '';
    for (const node of children(element)) {
      if (length.left <= 0) break;
      if (node.nodeType === 3) {
        const piece = node.data.length > length.left ? node.data.slice(0, length.left) : node.data;
        length.left -= piece.length;
        text += piece;
      } else if (node.nodeType === 1) {
        const tag = node.localName;
        if (SKIPPED.has(tag) || node.getAttribute('aria-hidden') === 'true' || !isShown(node)) continue;
        const label = node.getAttribute('aria-label') || (tag === 'img' && node.alt);
        const inner = label || textContent(node, length);
        text += INLINE.has(tag) ? inner : ` ${inner} `;
      }
    }
    return text;
  }

  function nativeName(element, tag, role) {
    switch (tag) {
      case 'input':
        if (role === 'button') return element.value || element.alt || (element.type === 'submit' ? 'Submit' : element.type === 'reset' ? 'Reset' : '');
        // falls through
      case 'select': case 'textarea': case 'meter': case 'progress': case 'output': case 'button':
        return element.labels?.length ? Array.from(element.labels, (label) => textContent(label)).join(' ') : '';
      case 'img': case 'area': return element.alt;
      case 'fieldset': return childText(element, 'legend');
      case 'table': return childText(element, 'caption');
      case 'figure': return childText(element, 'figcaption');
      case 'optgroup': return element.label;
      case 'option': return element.label;
      case 'details': return '';
      case 'svg': return element.querySelector(':scope > title')?.textContent ?? '';
      case 'iframe': return element.title;
      default: return '';
    }
  }

  function childText(element, tag) {
    const child = element.querySelector(`:scope > ${tag}`);
    return child ? textContent(child) : '';
  }

  function nameOf(element, tag, role) {
    return cleanText(labelledByText(element, 'aria-labelledby') || element.getAttribute('aria-label') || '')
      || cleanText(nativeName(element, tag, role) || '')
      || (NAMED_BY_CONTENT.has(role) && cleanText(textContent(element)))
      || cleanText(element.getAttribute('title') || element.getAttribute('placeholder')
        || element.getAttribute('aria-placeholder') || '');
  }

  function isTrue(element, attribute) {
    return element.getAttribute(attribute) === 'true';
  }

  const isDisabled = (element) => element.matches(':disabled') || element.closest('[aria-disabled="true"]') !== null;

  function statesOf(element, tag, role) {
    let states = '';
    if (element.matches(':disabled') || isTrue(element, 'aria-disabled')) states += ' disabled';
    if (element === focusedElement() && tag !== 'iframe') states += ' focused';
    const checked = element.getAttribute('aria-checked') ?? element.getAttribute('aria-pressed');
    if (tag === 'input' && (element.type === 'checkbox' || element.type === 'radio')) {
      if (element.indeterminate) states += ' mixed';
      else if (element.checked) states += ' checked';
    } else if (checked === 'true') states += element.hasAttribute('aria-checked') ? ' checked' : ' pressed';
    else if (checked === 'mixed') states += ' mixed';
    const expanded = element.getAttribute('aria-expanded');
    if (expanded === 'true' || (tag === 'details' && element.open)) states += ' expanded';
    else if (expanded === 'false' || (tag === 'details' && !element.open)) states += ' collapsed';
    if (isTrue(element, 'aria-selected') || (tag === 'option' && element.selected)) states += ' selected';
    if (role === 'heading') {
      states += ` level=${levelOf(element) ?? (/^h[1-6]$/.test(tag) ? tag[1] : '2')}`;
    } else if (role === 'treeitem' && levelOf(element) > 1) states += ` level=${levelOf(element)}`;
    const current = element.getAttribute('aria-current');
    if (current && current !== 'false') states += ' current';
    if (element.required || isTrue(element, 'aria-required')) states += ' required';
    if (element.readOnly === true || isTrue(element, 'aria-readonly')) states += ' readonly';
    if (isTrue(element, 'aria-invalid')) states += ' invalid';
    if (isTrue(element, 'aria-modal') || (tag === 'dialog' && element.matches(':modal'))) states += ' modal';
    if (isTrue(element, 'aria-busy')) states += ' busy';
    const value = valueOf(element, tag, role);
    if (value) states += ` value=${quote(value)}`;
    return states;
  }

  const levelOf = (element) => /^[1-9][0-9]{0,2}$/.exec(element.getAttribute('aria-level') ?? '')?.[0];

  function valueOf(element, tag, role) {
    switch (tag) {
      case 'input':
        if (role === 'button' || element.type === 'checkbox' || element.type === 'radio') return '';
        return element.type === 'password' ? '•'.repeat(Math.min(element.value.length, LONGEST)) : cleanText(element.value);
      case 'textarea': return editorOf(element) ? '' : cleanText(element.value);
      case 'select': return cleanText(Array.from(element.selectedOptions, (option) => option.label).join(', '));
      case 'meter': case 'progress': return element.position === -1 ? '' : String(element.value);
    }
    const text = element.getAttribute('aria-valuetext') ?? element.getAttribute('aria-valuenow');
    if (text) return cleanText(text);
    return role === 'textbox' && element.isContentEditable && !editorOf(element) ? cleanText(element.innerText ?? '') : '';
  }

  function focusedElement() {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    return element === document.body ? null : element;
  }

  // ---- Monaco, the editor of VS Code and of many pages --------------------------------------------------------------

  const MOST_EDITOR_LINES = 200;

  // The editor whose keys this element receives. The element itself holds no text.
  const editorOf = (e) => e.matches('.native-edit-context, .inputarea') ? e.closest('.monaco-editor') : null;

  const plainSpaces = (text) => text.replace(/\u00A0/g, ' ');

  // The lines in view, which Monaco draws out of order and hides from assistive technology; with their numbers.
  function pushEditorLines(walk, editor, depth) {
    const own = (selector) => Array.from(editor.querySelectorAll(selector)).filter((e) => e.closest('.monaco-editor') === editor);
    const topOf = (e) => Math.round(e.getBoundingClientRect().top);
    const numbers = new Map(own('.margin-view-overlays .line-numbers').map((e) => [topOf(e.parentElement), e.textContent.trim()]));
    const lines = own('.view-lines > .view-line').map((e) => ({ top: topOf(e), text: e.textContent }));
    lines.sort((a, b) => a.top - b.top);
    const [content] = own('.lines-content');
    if (!numbers.size && content && topOf(content) < topOf(editor)) pushLine(walk, depth, '… (scrolled: there are lines above)', 0, 0);
    for (const { top, text } of lines.slice(0, MOST_EDITOR_LINES)) {
      if (isFull(walk)) return;
      const line = plainSpaces(text.replace(SYMBOLS, '')).trimEnd();
      const number = /^\d{1,9}$/.exec(numbers.get(top) ?? '')?.[0];
      if (line) pushLine(walk, depth, (number ? `${number} ` : '') + quote(shorten(line, LONGEST)), 0, 0);
    }
    if (lines.length > MOST_EDITOR_LINES) pushLine(walk, depth, `… and ${lines.length - MOST_EDITOR_LINES} more lines`, 0, 0);
  }

  // ---- the tree ----------------------------------------------------------------------------------------------------

  // Children as rendered: of open shadow roots, and slotted nodes at their slot.
  function children(element) {
    if (element.shadowRoot) return element.shadowRoot.childNodes;
    if (element.localName === 'slot') {
      const assigned = element.assignedNodes();
      if (assigned.length) return assigned;
    }
    return element.childNodes;
  }

  const VISIBLY = { visibilityProperty: true, contentVisibilityAuto: false };

  // Whether the element can be rendered. `false` also for `visibility: hidden`, whose children may be visible.
  function isShown(element) {
    return element.checkVisibility(VISIBLY) || getComputedStyle(element).display === 'contents';
  }

  // Hidden together with its subtree.
  function isHiddenSubtree(element) {
    return !element.checkVisibility() && getComputedStyle(element).display !== 'contents';
  }

  const DEEPEST = 400;
  const MOST_OPTIONS = 40;

  // Snapshot lines from element `number` (0: the whole document) on, each [depth, text, number, shows a frame];
  // at most `max` bytes of them.
  function takeSnapshot(max, number) {
    const root = number ? elementOf(number) : document.body ?? document.documentElement;
    if (!root) return null;
    const walk = { lines: [], bytes: 0, max, run: '', cut: false, deadline: performance.now() + 3000, steps: 0 };
    if (number) walkElement(walk, root, 0, 0, '');
    else walkChildren(walk, root, 0, 0, '');
    flushText(walk, 0, '');
    return JSON.stringify({ lines: walk.lines, cut: walk.cut, title: document.title, url: location.href });
  }

  function isFull(walk) {
    if (!walk.cut && (walk.bytes > walk.max || (++walk.steps % 256 === 0 && performance.now() > walk.deadline))) walk.cut = true;
    return walk.cut;
  }

  function pushLine(walk, depth, text, number, frame) {
    walk.lines.push([depth, text, number, frame]);
    walk.bytes += depth + text.length + 8;
  }

  function flushText(walk, depth, covered) {
    if (!walk.run) return;
    const text = cleanText(walk.run);
    walk.run = '';
    if (text && covered !== true && !covered.includes(text)) pushLine(walk, depth, quote(text), 0, 0);
  }

  // `covered`: the text already contained in the name of an ancestor; `true` when all text is.
  function walkChildren(walk, parent, depth, deep, covered) {
    for (const node of children(parent)) {
      if (isFull(walk)) return;
      if (node.nodeType === 3) {
        if (walk.run.length < LONGEST * 2 && !isClosedDetails(parent)) walk.run += node.data;
      } else if (node.nodeType === 1) walkElement(walk, node, depth, deep + 1, covered);
    }
  }

  const isClosedDetails = (parent) => parent.localName === 'details' && !parent.open;

  function walkElement(walk, e, depth, deep, covered) {
    const tag = e.localName;
    if (SKIPPED.has(tag) || e.getAttribute('aria-hidden') === 'true') return;
    if (deep > DEEPEST) { walk.cut = true; return; }
    let visible = true;
    if (tag !== 'option' && tag !== 'optgroup' && !e.checkVisibility(VISIBLY)) {
      if (isHiddenSubtree(e)) return;
      visible = getComputedStyle(e).visibility === 'visible';
    }
    if (tag === 'br') { walk.run += ' '; return; }
    let role = roleOf(e, tag);
    // A label is clickable when its control is hidden; otherwise its text is already the name of the control.
    const control = tag === 'label' && e.control;
    if (!role && visible && (control ? !isShown(control) : isClickable(e))) role = 'clickable';
    if (!visible) {
      flushText(walk, depth, covered);
      for (const node of children(e)) if (node.nodeType === 1) walkElement(walk, node, depth, deep + 1, covered);
      flushText(walk, depth, covered);
      return;
    }
    if (!role) {
      const inline = INLINE.has(tag);
      const inner = control ? true : covered;
      if (!inline || control) flushText(walk, depth, covered);
      walkChildren(walk, e, depth, deep, inner);
      if (!inline || control) flushText(walk, depth, inner);
      return;
    }
    flushText(walk, depth, covered);
    const name = nameOf(e, tag, role);
    // A button in a button of the same name, a link in a tab: one line is enough. Decoration is omitted.
    const echo = covered === true && (walk.above === name || !ACTED_ON.has(role));
    const at = walk.lines.length;
    const states = statesOf(e, tag, role);
    if (!echo) pushLine(walk, depth, lineText(e, role, name, states), numberOf(e), tag === 'iframe' || tag === 'frame' ? 1 : 0);
    const editor = role === 'textbox' && editorOf(e);
    if (editor) pushEditorLines(walk, editor, depth + 1);
    if (editor || tag === 'iframe' || tag === 'frame' || tag === 'textarea' || (role === 'textbox' && e.isContentEditable)) return;
    const above = walk.above;
    if (!echo && DRAWN.has(role)) walk.above = name;
    if (tag === 'select') pushOptions(walk, e, depth + 1);
    else {
      const inner = covered === true || DRAWN.has(role) ? true : name || covered;
      walkChildren(walk, e, echo ? depth : depth + 1, deep, inner);
      flushText(walk, echo ? depth : depth + 1, inner);
    }
    walk.above = above;
    if (!echo && !name && !states && !ACTED_ON.has(role)) simplify(walk, at, depth, FRAMES.has(role));
  }

  function lineText(e, role, name, states) {
    let text = name ? `${role} ${quote(name)}${states}` : role + states;
    if (role === 'link') {
      const href = e.getAttribute('href') ?? '';
      if (href && href !== '#' && !href.startsWith('javascript:')) text += ` → ${quote(shorten(href, 100))}`;
    }
    return text;
  }

  function pushOptions(walk, select, depth) {
    let count = 0;
    for (const option of select.options) {
      if (++count > MOST_OPTIONS) break;
      pushLine(walk, depth, lineText(option, 'option', cleanText(option.label), option.selected ? ' selected' : ''), numberOf(option), 0);
    }
    const more = select.options.length - MOST_OPTIONS;
    if (more > 0) pushLine(walk, depth, `… and ${more} more options`, 0, 0);
  }

  // A line without a name: removed when empty or around a single element; merged with a single text.
  function simplify(walk, at, depth, whole) {
    const { lines } = walk;
    const below = lines.length - at - 1;
    if (walk.cut) return;
    if (below === 0) { lines.length = at; return; }
    if (below === 1 && !lines[at + 1][2]) {
      lines[at][1] += ` ${lines[at + 1][1]}`;
      lines.length = at + 1;
      return;
    }
    if (!whole || lines.findIndex((line, index) => index > at + 1 && line[0] === depth + 1) !== -1) return;
    lines.splice(at, 1);
    for (let i = at; i < lines.length; i++) lines[i][0]--;
  }

  // Role and name of an element, for messages.
  function describe(e) {
    const tag = e.localName;
    const role = roleOf(e, tag) || (isClickable(e) ? 'clickable' : tag);
    const name = nameOf(e, tag, role);
    return name ? `${role} ${quote(shorten(name, 60))}` : role;
  }

  // ---- acting ------------------------------------------------------------------------------------------------------

  // A rendered frame at least 15 ms from now. The 15 ms are a timer's: what moves by a timer has then moved, while a busy
  // machine may render frames before it runs timers. With a timeout, since a hidden page renders no frame.
  const nextFrame = () => new Promise((done) => {
    const timer = setTimeout(done, document.hidden ? 50 : 250);
    const endFrame = () => {
      clearTimeout(timer);
      done();
    };
    setTimeout(() => requestAnimationFrame(endFrame), 15);
  });

  const sameRect = (a, b) => a.x === b.x && a.y === b.y && a.width === b.width && a.height === b.height;

  function elementAt(x, y) {
    let found = document.elementFromPoint(x, y);
    while (found?.shadowRoot) {
      const inner = found.shadowRoot.elementFromPoint(x, y);
      if (!inner || inner === found) break;
      found = inner;
    }
    return found;
  }

  function contains(outer, inner) {
    for (let node = inner; node; node = node.parentNode ?? node.host) {
      if (node === outer) return true;
      if (node.assignedSlot && contains(outer, node.assignedSlot)) return true;
    }
    return false;
  }

  // The covering element, described as in a snapshot.
  function coveredBy(found, target) {
    let covering = found;
    for (let e = found; e && !contains(e, target); e = e.parentElement ?? e.getRootNode().host) {
      if (roleOf(e, e.localName)) { covering = e; if (nameOf(e, e.localName, roleOf(e, e.localName))) break; }
    }
    return { fail: 'covered', by: numberOf(covering), what: describe(covering) };
  }

  function visibleCenter(e) {
    for (const rect of e.getClientRects()) {
      const left = Math.max(rect.left, 0), top = Math.max(rect.top, 0);
      const right = Math.min(rect.right, innerWidth), bottom = Math.min(rect.bottom, innerHeight);
      if (right - left > 0 && bottom - top > 0) return { x: (left + right) / 2, y: (top + bottom) / 2 };
    }
    return null;
  }

  async function checkElement(e, wants) {
    if (!e.isConnected) return { fail: 'removed' };
    const rect = e.getBoundingClientRect();
    if (!e.checkVisibility(VISIBLY) && getComputedStyle(e).display !== 'contents') return { fail: 'hidden' };
    if (rect.width <= 0 || rect.height <= 0) return { fail: 'hidden', what: 'its size is zero' };
    if (wants.enabled && isDisabled(e)) return { fail: 'disabled' };
    e.scrollIntoViewIfNeeded(true);
    const before = e.getBoundingClientRect();
    await nextFrame();
    if (!e.isConnected) return { fail: 'removed' };
    if (!sameRect(before, e.getBoundingClientRect())) return { fail: 'moving' };
    const point = visibleCenter(e);
    if (!point) return { fail: 'outside' };
    if (wants.hit) {
      const found = elementAt(point.x, point.y);
      if (!found) return { fail: 'outside' };
      if (found !== e && !contains(e, found) && found.closest?.('label')?.control !== e) return coveredBy(found, e);
    }
    return point;
  }

  // Waits until the element can be acted on: { x, y } in this frame, or the reason in `fail`.
  async function waitUntilActionable(number, wants, ms) {
    const deadline = performance.now() + ms;
    const e = elementOf(number);
    if (!e) return { fail: 'removed' };
    const what = describe(e);
    for (;;) {
      const found = await checkElement(e, wants);
      if (!found.fail || found.fail === 'removed' || performance.now() >= deadline) return { ...found, target: what };
      await nextFrame();
    }
  }

  // Converts a point in the frame shown by element `number` to one in this frame, if no element covers it there.
  function pointInParent(number, x, y, check) {
    const e = elementOf(number);
    if (!e) return { fail: 'removed' };
    let rect = e.getBoundingClientRect();
    const at = () => {
      rect = e.getBoundingClientRect();
      const style = getComputedStyle(e);
      const wide = e.offsetWidth ? rect.width / e.offsetWidth : 1, high = e.offsetHeight ? rect.height / e.offsetHeight : 1;
      return {
        x: rect.left + (e.clientLeft + parseFloat(style.paddingLeft) + x) * wide,
        y: rect.top + (e.clientTop + parseFloat(style.paddingTop) + y) * high,
      };
    };
    let point = at();
    if (point.x < 0 || point.y < 0 || point.x >= innerWidth || point.y >= innerHeight) {
      scrollBy({ left: point.x - innerWidth / 2, top: point.y - innerHeight / 2, behavior: 'instant' });
      point = at();
    }
    if (!check) return point;
    const found = elementAt(point.x, point.y);
    if (!found) return { fail: 'outside' };
    return found === e ? point : coveredBy(found, e);
  }

  // Whether a native drag has started since the last call with `begin`.
  let drag = null;
  function checkNativeDrag(begin) {
    if (begin) {
      drag = null;
      addEventListener('dragstart', (event) => { drag = event; }, { capture: true, once: true });
    }
    return drag !== null && !drag.defaultPrevented;
  }

  // Focuses an element for typing, with the caret at the end of its text.
  async function focus(number, ms) {
    const can = await waitUntilActionable(number, { enabled: true, hit: false }, ms);
    if (can.fail) return can;
    const e = elementOf(number);
    if (focusedElement() !== e && !contains(e, focusedElement())) {
      e.focus({ preventScroll: true });
      if (typeof e.setSelectionRange === 'function') {
        // Number and date inputs have no selection.
        try { e.setSelectionRange(e.value.length, e.value.length); } catch { }
      } else if (e.isContentEditable) getSelection().selectAllChildren(e), getSelection().collapseToEnd();
    }
    const now = focusedElement();
    if (!now || !(contains(e, now) || contains(now, e))) return { fail: 'focus', target: can.target };
    return can;
  }

  // A closed <select> is rendered by the system and cannot be clicked: sets the option and dispatches the events.
  function selectOption(number) {
    const option = elementOf(number);
    const select = option?.closest?.('select');
    if (option?.localName !== 'option' || !select || select.multiple || select.size > 1) return null;
    if (option.disabled || select.disabled) return { fail: 'disabled', target: describe(option) };
    select.focus({ preventScroll: true });
    if (!option.selected) {
      option.selected = true;
      select.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
      select.dispatchEvent(new Event('change', { bubbles: true }));
    }
    return { target: describe(option) };
  }

  const OWN_PICKERS = new Set(['color', 'date', 'datetime-local', 'month', 'range', 'time', 'week']);

  function fireChanged(e) {
    e.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    e.dispatchEvent(new Event('change', { bubbles: true }));
  }

  // Selects the options of a <select> that have one of these labels or values, and no others.
  async function selectValues(number, values, ms) {
    const can = await waitUntilActionable(number, { enabled: true, hit: false }, ms);
    if (can.fail) return can;
    const e = elementOf(number);
    if (e.localName !== 'select') return { ...can, fail: 'it is no <select>' };
    const options = Array.from(e.options);
    const find = (value) => options.find((it) => it.value === value) ?? options.find((it) => cleanText(it.label) === cleanText(value));
    const found = values.map(find);
    const missing = values.find((_, index) => !found[index]);
    if (missing !== undefined) {
      const labels = options.slice(0, MOST_OPTIONS).map((it) => quote(shorten(cleanText(it.label), 60))).join(', ');
      return { ...can, fail: `it has no option ${quote(shorten(missing, 60))}, only ${labels}` };
    }
    if (found.length > 1 && !e.multiple) return { ...can, fail: 'it takes one option' };
    if (found.some((it) => it.disabled)) return { ...can, fail: 'disabled' };
    e.focus({ preventScroll: true });
    if (options.some((it) => it.selected !== found.includes(it))) {
      if (e.multiple) options.forEach((it) => { it.selected = found.includes(it); });
      else found[0].selected = true;
      fireChanged(e);
    }
    return can;
  }

  // Prepares a field for its new value: `what` is `done`, `click` (it is to be toggled), or `text` (all of its text is selected).
  async function fill(number, value, ms) {
    const e = elementOf(number);
    if (!e) return { fail: 'removed' };
    if (e.localName === 'select') return { ...await selectValues(number, e.multiple ? value.split(/\s*,\s*/).filter(Boolean) : [value], ms), what: 'done' };
    const checked = checkedState(e);
    if (checked !== null) {
      if (value !== 'true' && value !== 'false') return { fail: 'it takes `true` or `false`', target: describe(e) };
      return { ...await waitUntilActionable(number, { enabled: true, hit: false }, ms), what: checked === (value === 'true') ? 'done' : 'click' };
    }
    const can = await focus(number, ms);
    if (can.fail) return can;
    if (e.readOnly) return { ...can, fail: 'it is read-only' };
    if (e.localName === 'input' && OWN_PICKERS.has(e.type)) {
      e.value = value;
      if (e.value.toLowerCase() !== value.toLowerCase()) return { ...can, fail: `it does not take ${quote(shorten(value, 60))}` };
      fireChanged(e);
      return { ...can, what: 'done' };
    }
    if (typeof e.select === 'function') e.select();
    else if (e.isContentEditable) getSelection().selectAllChildren(e);
    else return { ...can, fail: 'it takes no text' };
    return { ...can, what: 'text' };
  }

  // Whether it is checked; null for what cannot be.
  function checkedState(e) {
    if (e.localName === 'input' && (e.type === 'checkbox' || e.type === 'radio')) return e.checked;
    const label = e.closest?.('label')?.control;
    if (label && (label.type === 'checkbox' || label.type === 'radio')) return label.checked;
    const state = e.getAttribute('aria-checked');
    return state === null ? null : state === 'true';
  }

  const isChecked = (number) => { const e = elementOf(number); return e ? checkedState(e) : null; };

  // Sends the paste event of a clipboard with this text to the focused element; whether the text is still to be inserted.
  function paste(text) {
    const e = document.hasFocus() ? focusedElement() : null;
    if (!e || e.localName === 'iframe' || e.localName === 'frame') return null;
    const clipboardData = new DataTransfer();
    clipboardData.setData('text/plain', text);
    return e.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true, composed: true }));
  }

  // The number of the file input that an element is or has; 0: it has none.
  function fileInput(number) {
    const e = elementOf(number);
    if (!e) return null;
    const is = (it) => it?.localName === 'input' && it.type === 'file';
    const found = [e, e.control, e.closest?.('label')?.control].find(is) ?? e.querySelector('input[type=file]');
    return found ? numberOf(found) : 0;
  }

  // The rectangle of an element, for a screenshot.
  async function rectangle(number, ms) {
    const can = await waitUntilActionable(number, { enabled: false, hit: false }, ms);
    if (can.fail) return can;
    const { x, y, width, height } = elementOf(number).getBoundingClientRect();
    return { x, y, width, height, target: can.target };
  }

  // Resolves when the page has rendered at least two frames and its DOM has not changed for `quiet` ms; or after `ms`.
  async function waitUntilSettled(quiet, ms) {
    const deadline = performance.now() + ms;
    let changed = 0;
    const watch = new MutationObserver(() => { changed = performance.now(); });
    watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    await nextFrame();
    let since = performance.now();
    for (let now = since; now < deadline; now = performance.now()) {
      await nextFrame();
      if (changed > since) since = changed;
      else if (performance.now() - since >= quiet) break;
    }
    watch.disconnect();
    return true;
  }

  // What was typed by actions, and the elements that show it: it is nothing that the page has said.
  const typings = [];
  const MOST_TYPINGS = 20;
  const LONGEST_TYPING = 4000;

  // Records that `text` is about to be typed into the focused element, if that is in this frame.
  function recordTyping(text) {
    const focused = document.hasFocus() ? focusedElement() : null;
    if (!focused || focused.localName === 'iframe' || focused.localName === 'frame') return false;
    const element = focused.closest('.monaco-editor') ?? focused;
    const known = typings.findIndex(({ into }) => into.deref() === element);
    const before = known < 0 ? '' : typings.splice(known, 1)[0].text;
    typings.push({ into: new WeakRef(element), text: (before + text).slice(-LONGEST_TYPING) });
    if (typings.length > MOST_TYPINGS) typings.shift();
    return true;
  }

  const typedElements = (text) => typings.filter((it) => it.text.includes(text)).map(({ into }) => into.deref()).filter((e) => e?.isConnected);

  // What the page shows, by itself: a text that was typed counts only outside of the element that it was typed into.
  function showsText(text) {
    const typed = typedElements(text);
    const isOther = (e) => !typed.some((it) => contains(it, e)) && e.checkVisibility(VISIBLY);
    const occurrences = (e) => plainSpaces(e?.innerText ?? '').split(plainSpaces(text)).length - 1;
    const inTyped = typed.filter((e) => e.checkVisibility(VISIBLY)).reduce((sum, e) => sum + occurrences(e), 0);
    return occurrences(document.body) > inTyped
      || Array.from(document.querySelectorAll('[aria-label]')).some((e) => e.getAttribute('aria-label').includes(text) && isOther(e))
      || Array.from(document.querySelectorAll('input, textarea')).some((e) => e.value.includes(text) && isOther(e));
  }

  const isGone = (number) => {
    const e = elementOf(number);
    return !e || !e.checkVisibility(VISIBLY) || e.getClientRects().length === 0;
  };

  // Resolves to true as soon as `holds()` is true, to false after `ms`; checks again whenever the page changes.
  function waitUntil(holds, ms) {
    if (holds()) return true;
    return new Promise((done) => {
      let due = false;
      const end = (answer) => { watch.disconnect(); clearTimeout(timer); removeEventListener('transitionend', check, true); removeEventListener('input', check, true); done(answer); };
      const check = () => {
        if (due) return;
        due = true;
        nextFrame().then(() => { due = false; if (holds()) end(true); });
      };
      const watch = new MutationObserver(check);
      const timer = setTimeout(() => end(holds()), ms);
      watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
      addEventListener('transitionend', check, true);
      addEventListener('input', check, true);
    });
  }

  const storageItems = (area) => Object.fromEntries(Object.entries(globalThis[area]));

  function setStorage(area, pairs) {
    for (const [name, value] of pairs) globalThis[area].setItem(name, value);
    return true;
  }

  function clearStorage(area, name) {
    const storage = globalThis[area];
    const removed = name === null ? storage.length : Number(storage.getItem(name) !== null);
    if (name === null) storage.clear();
    else storage.removeItem(name);
    return removed;
  }

  globalThis.tether = {
    storageItems, setStorage, clearStorage,
    takeSnapshot, waitUntilActionable, pointInParent, checkNativeDrag, focus, selectOption, rectangle, waitUntilSettled,
    numberOf, recordTyping, selectValues, fill, isChecked, paste, fileInput, element: elementOf,
    waitForText: (text, ms) => waitUntil(() => showsText(text), ms),
    waitUntilGone: (number, ms) => waitUntil(() => isGone(number), ms),
  };
})();
