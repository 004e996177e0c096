// What the agents of these examples can do, within the folder that they were started in.

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
