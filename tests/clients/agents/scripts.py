"""What the model says."""

FAILING = ("shell", "ls /no/such/directory")
HELD = ("shell", "touch started; while [ -e held ]; do sleep 0.1; done")

def work(n):
    """Thirty calls of an agent that makes progress: it looks, changes and tests, and some calls fail."""
    return [
        ("shell", f"echo 'int part_{n}() {{ return {n * n}; }}' > part_{n}.c"),
        ("read", f"part_{n}.c"),
        ("shell", f"sed -i 's/{n * n}/{n * n + 1}/' part_{n}.c && grep -n return part_{n}.c"),
        ("shell", f"test -e part_{n + 1}.c || {{ echo part_{n + 1}.c is still missing; exit 1; }}"),
        ("shell", "ls | wc -l; wc -c part_*.c | tail -1"),
    ]


VARIED = [call for n in range(6) for call in work(n)] + ["All six parts are there."]
CALLS = [("shell", f"touch call-{n}; echo call {n} of many") for n in range(6)]
