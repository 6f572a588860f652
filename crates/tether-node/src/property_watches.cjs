// The watched properties of a program: each is an accessor instead of a value, and its setter pauses the engine.
// BINDING stands for a name that the program does not know.
(() => {
  'use strict';
  const { defineProperty, getOwnPropertyDescriptor } = Reflect;
  // Both let go of an object that the program has forgotten: its watches live as long as it does.
  const ofObject = new WeakMap();
  const watches = new Map();
  let last = 0;

  const find = (object, name) => ofObject.get(object)?.get(name);
  const findById = (id) => watches.get(id)?.deref();

  const keep = (it) => {
    for (const [id, kept] of watches) if (!kept.deref()) watches.delete(id);
    watches.set(it.id, new WeakRef(it));
    if (!ofObject.has(it.object)) ofObject.set(it.object, new Map());
    ofObject.get(it.object).set(it.name, it);
  };

  // Why a property cannot be watched: the reasons are those of `property_watches.rs`.
  const refuse = (own) => {
    if (!own) return 'missing';
    if (!('value' in own)) return 'accessor';
    if (!own.configurable) return 'fixed';
    return own.writable ? '' : 'constant';
  };

  const makeAccessor = (it) => {
    const get = { BINDING() { return it.value; } }.BINDING;
    const set = {
      BINDING(value) {
        if (this !== it.object) {
          if (Object(this) !== this) return;
          const own = getOwnPropertyDescriptor(this, it.name);
          // Written through an object that inherits the property: it gets one of its own. A proxy has the same one.
          if (own?.set !== set) {
            defineProperty(this, it.name, { value, writable: true, enumerable: true, configurable: true });
            return;
          }
        }
        it.before = it.value;
        it.value = value;
        if (it.set === set) {
          debugger;
        }
      },
    }.BINDING;
    return { get, set };
  };

  return {
    add(object, name) {
      const own = getOwnPropertyDescriptor(object, name);
      const known = find(object, name);
      if (known?.set && own?.set === known.set) return known.id;
      const reason = refuse(own);
      if (reason || known) return reason || known.id;
      last += 1;
      keep({ id: last, object, name });
      return last;
    },

    install(id) {
      const it = findById(id);
      if (!it) return 'missing';
      const own = getOwnPropertyDescriptor(it.object, it.name);
      if (it.set && own?.set === it.set) return '';
      const reason = refuse(own);
      if (reason) return reason;
      const { get, set } = makeAccessor(it);
      it.value = own.value;
      if (!defineProperty(it.object, it.name, { get, set, enumerable: own.enumerable, configurable: true })) return 'fixed';
      it.set = set;
      return '';
    },

    // The value of a property that is watched now; any other throws.
    read(object, name) {
      const known = find(object, name);
      if (!known?.set || getOwnPropertyDescriptor(object, name)?.set !== known.set) throw new Error('not watched');
      return known.value;
    },

    // The property has its value again, unless the program has redefined it.
    remove(id) {
      const it = findById(id);
      const set = it?.set;
      if (!set) return;
      it.set = it.before = undefined;
      const own = getOwnPropertyDescriptor(it.object, it.name);
      if (own?.set === set && own.configurable) {
        defineProperty(it.object, it.name, { value: it.value, writable: true, enumerable: own.enumerable, configurable: true });
      }
    },
  };
})()
