// The tools of the example agents. They work in the folder in which the agent was started.

import { exec } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(exec);

export const tools = {
  list_files: {
    description: 'Lists the files of the folder.',
    parameters: {},
    act: async () => (await readdir('.')).join('\n'),
  },
  read_file: {
    description: 'Reads a file.',
    parameters: { path: 'its name' },
    act: ({ path }) => readFile(basename(path), 'utf8'),
  },
  shell: {
    description: 'Runs a command.',
    parameters: { command: 'for sh' },
    act: async ({ command }, signal) => (await run(command, { signal })).stdout,
  },
};

/** JSON Schema of a tool's parameters. */
export const schemaOf = ({ parameters }) => ({
  type: 'object',
  properties: Object.fromEntries(Object.entries(parameters).map(([name, description]) => [name, { type: 'string', description }])),
  required: Object.keys(parameters),
});
