// What editors make of the types of the Python client: pyright, which comes with npm. It needs no framework: each has a stub here.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'watchdog-types-'));
after(() => rmSync(root, { recursive: true, force: true }));

/** The classes that the modules take from their frameworks. */
const stubs = {
  agent_framework: ['ChatMiddleware', 'FunctionMiddleware'],
  agents: ['RunHooks'],
  claude_agent_sdk: ['HookMatcher'],
  'crewai/events': ['BaseEventListener', 'LLMCallStartedEvent', 'TaskCompletedEvent', 'ToolUsageErrorEvent', 'ToolUsageFinishedEvent', 'ToolUsageStartedEvent'],
  'google/adk/plugins/base_plugin': ['BasePlugin'],
  'langchain_core/callbacks': ['BaseCallbackHandler'],
  'opentelemetry/sdk/trace': ['SpanProcessor'],
  smolagents: ['ActionStep'],
  'strands/hooks': ['AfterToolCallEvent', 'BeforeModelCallEvent', 'BeforeToolCallEvent'],
};

const used = `
import asyncio
from typing import AsyncIterator, Iterator, List, Optional

from watchdog_client import Cancelled, Reporter, WaitFailed, wait, wait_async, wrap
from watchdog_client.pytest_plugin import WatchdogFixture


@wrap
def plain(query: str, limit: int = 3) -> List[str]:
    return [query] * limit


@wrap(name="stream")
async def stream(query: str) -> AsyncIterator[str]:
    yield query


@wrap
def pieces() -> Iterator[int]:
    yield 1


async def agent() -> Optional[str]:
    async with Reporter("my-run", agent="planner", labels={"team": "a"}, on_cancel=print) as watchdog:
        found: List[str] = plain("x", limit=2)
        async for piece in stream("x"):
            found.append(piece.upper())
        with watchdog.tool("search", {"query": "x"}) as call:
            call.result = sum(pieces())
        current = Reporter.current()
        await watchdog.aflush(1.0)
        return current.session if current else None


def test_it(watchdog: WatchdogFixture) -> None:
    try:
        asyncio.run(agent())
        watchdog.wait("health=blocked")["lifecycle"].upper()
    except WaitFailed as failed:
        print(failed.end.upper())
    except Cancelled:
        pass
    print(wait("x")["progress"], asyncio.run(wait_async("x", lambda progress: progress["iteration"] == 7)))
`;
const wrong = `
from watchdog_client import Monitor, Reporter, wrap

@wrap
def plain(query: str) -> int:
    return len(query)

plain(7)
Monitor().progres("x")
Reporter("x").heartbeat("one")
Reporter("x", polcy={})
`;

/** A project with the client, and what pyright says of it. */
function project(name, files, mode) {
  const folder = join(root, name);
  mkdirSync(folder);
  cpSync(here('python'), join(folder, 'site'), { recursive: true });
  for (const [path, classes] of Object.entries(stubs)) {
    const file = join(folder, 'stubs', path, '__init__.pyi');
    for (let at = dirname(file); at !== join(folder, 'stubs'); at = dirname(at)) {
      mkdirSync(at, { recursive: true });
      writeFileSync(join(at, '__init__.pyi'), '');
    }
    writeFileSync(file, `from typing import Any\n${classes.map((one) => `class ${one}:\n    def __init__(self, *args: Any, **more: Any) -> None: ...\n`).join('')}`);
  }
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  const settings = { include: Object.keys(files).length ? Object.keys(files) : ['site'], extraPaths: ['site'], stubPath: 'stubs', pythonVersion: '3.9',
                     typeCheckingMode: mode, reportMissingModuleSource: 'none' };
  writeFileSync(join(folder, 'pyrightconfig.json'), JSON.stringify(settings));
  return (...words) => {
    const flags = [here('node_modules/pyright/index.js'), '-p', folder, '--pythonpath', '/usr/bin/python3', '--outputjson', ...words];
    const done = spawnSync(process.execPath, flags, { encoding: 'utf8', env: { ...process.env, PYTHONPATH: `${folder}/site:${folder}/stubs` } });
    assert.ok(done.stdout.startsWith('{'), done.stdout + done.stderr);
    return JSON.parse(done.stdout);
  };
}

describe('types of the Python client', { timeout: 240_000 }, () => {
  test('its sources have no mistake', () => {
    assert.deepEqual(project('sources', {}, 'standard')().generalDiagnostics.map(({ file, message }) => `${file}: ${message}`), []);
  });

  test('each public name has a type that is known', () => {
    const { typeCompleteness: found } = project('complete', {}, 'standard')('--verifytypes', 'watchdog_client', '--ignoreexternal');
    const incomplete = found.symbols.filter(({ isExported, isTypeKnown, isTypeAmbiguous }) => isExported && (!isTypeKnown || isTypeAmbiguous));
    assert.deepEqual(incomplete.map(({ name }) => name), []);
    assert.equal(found.completenessScore, 1);
  });

  test('a strict project uses it, and its mistakes are found', () => {
    const said = project('use', { 'test_use.py': used, 'wrong.py': wrong }, 'strict')().generalDiagnostics;
    assert.deepEqual(said.filter(({ file }) => file.endsWith('test_use.py')).map(({ range, message }) => `${range.start.line}: ${message}`), []);
    const rules = said.filter(({ file, rule }) => file.endsWith('wrong.py') && !rule.startsWith('reportUnknown')).map(({ rule }) => rule);
    assert.deepEqual(rules, ['reportArgumentType', 'reportAttributeAccessIssue', 'reportArgumentType', 'reportCallIssue']);
    // mypy of Debian agrees.
    const folder = join(root, 'use');
    const flags = ['-m', 'mypy', '--strict', '--python-version', '3.9', '--cache-dir', join(root, 'cache'), 'test_use.py'];
    const { status, stdout } = spawnSync('/usr/bin/python3', flags, { cwd: folder, encoding: 'utf8', env: { ...process.env, MYPYPATH: join(folder, 'site') } });
    assert.equal(status, 0, stdout);
  });
});
