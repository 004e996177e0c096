const { Reporter } = await import(process.env.WATCHDOG_CLIENT);

class Secret {
  #number;
  constructor(number) { this.#number = number; }
  read() { return this.#number; }
}

const results = {
  maps: (number) => new Map([[number, number]]),
  numbers: (number) => ({ id: BigInt(number) }),
  errors: (number) => new Error(`no leaf ${number}`),
  circles: (number) => { const one = { number }; one.self = one; return one; },
  secrets: (number) => new Secret(number),
  closures: (number) => ({ read: () => number }),
  symbols: (number) => ({ [Symbol.for('number')]: number }),
  hidden: (number) => Object.defineProperty({ id: 1 }, 'number', { value: number }),
  same: () => new Map([[1, 1]]),
};
const reporters = [];
for (const [session, result] of Object.entries(results)) {
  const watchdog = new Reporter(session);
  for (let number = 0; number < 14; ++number) await watchdog.tool('poll', {}, () => result(number));
  await watchdog.flush();
  reporters.push(watchdog);
}
console.log('reported');
for await (const _ of process.stdin);
for (const watchdog of reporters) watchdog.completed();
