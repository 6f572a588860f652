(lambda find, group: "\n".join(find(find, group, 0)).encode("utf-8", "replace").hex())(
    lambda find, group, depth: [
        line
        for part in getattr(group, "exceptions", ())[:10]
        for line in (
            find(find, part, depth + 1)
            if hasattr(part, "exceptions") and depth < 5
            else [
                "%s: %s" % (type(part).__name__, str(part)[:200].replace("\n", " "))
                + "".join(
                    " at %s:%d" % (frame.f_code.co_filename, line)
                    for frame, line in list(__import__("traceback").walk_tb(part.__traceback__))[-1:]
                )
            ]
        )
    ],
    __exception__[1],
)
