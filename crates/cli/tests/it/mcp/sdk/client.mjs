// The official SDK's client against `verdone mcp`: runs one scenario and prints what it saw as JSON. The Rust tests judge it.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [, , packages, verdone, scenario] = process.argv;
// The packages are installed elsewhere, so they are looked up from there.
const require = createRequire(`${packages}/package.json`);
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await load('client/index.js');
const { StdioClientTransport } = await load('client/stdio.js');

const transport = new StdioClientTransport({ command: verdone, args: ['mcp'], env: process.env, stderr: 'inherit' });
const client = new Client({ name: 'verdone-tests', version: '1.0.0' });
await client.connect(transport);

const call = (name, args = {}, options = {}) => client.callTool({ name, arguments: args }, undefined, options);
const memory = () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${transport.pid}/status`, 'utf8'))[1]);
const refused = (promise) => promise.then(() => 'answered', (error) => error.message);

const scenarios = {
  async look() {
    return {
      server: client.getServerVersion(),
      tools: (await client.listTools()).tools,
      resources: (await client.listResources()).resources.map((resource) => resource.uri),
      status: await call('status'),
      next: await call('next_story'),
      story: await call('get_story', { story: 'us-2' }),
      unknownStory: await call('get_story', { story: 'US-9' }),
      recall: await call('recall', { query: 'database port' }),
      verify: await call('verify'),
      noStage: await call('verify', { stage: 'security' }),
      plan: (await client.readResource({ uri: 'verdone://plan' })).contents[0].text,
      guardrails: (await client.readResource({ uri: 'verdone://guardrails' })).contents[0].text,
    };
  },
  async errors() {
    const claim = { story: 'US-1', summary: 'done', status: 'success', tests_passed: true };
    return {
      unknownTool: await call('push'),
      unknownField: await call('status', { verbose: true }),
      missing: await call('get_story', {}),
      wrongType: await call('recall', { query: 7 }),
      resource: await refused(client.readResource({ uri: 'verdone://journal' })),
      mutating: {
        complete_story: await call('complete_story', claim),
        report_blocked: await call('report_blocked', { story: 'US-1', reason: 'a', question: 'b' }),
        request_merge: await call('request_merge', { story: 'US-1', summary: 'a' }),
        add_guardrail: await call('add_guardrail', { text: 'a' }),
        add_story: await call('add_story', { title: 'a' }),
      },
    };
  },
  async cancel() {
    const stop = new AbortController();
    const verifying = refused(call('verify', {}, { signal: stop.signal }));
    // The check creates this file when it starts.
    while (!tryRead(process.env.STARTED)) await new Promise((done) => setTimeout(done, 20));
    stop.abort('not needed any more');
    return { cancelled: await verifying, after: await call('status') };
  },
  async many() {
    const calls = Number(process.env.CALLS);
    let wrong = 0;
    const ask = async (times) => {
      for (let n = 0; n < times; n += 10) {
        const batch = Array.from({ length: 10 }, (_, i) => call('get_story', { story: i === 9 ? 'US-9' : 'US-1' }));
        const answers = await Promise.all(batch);
        wrong += answers.filter((answer, i) => Boolean(answer.isError) !== (i === 9)).length;
      }
    };
    // Threads and their memory exist after the first calls.
    await ask(2000);
    const before = memory();
    await ask(calls);
    return { calls, wrong, before, after: memory() };
  },
};

function tryRead(path) {
  try {
    return readFileSync(path, 'utf8').length >= 0 && true;
  } catch {
    return false;
  }
}

const seen = await scenarios[scenario]();
await client.close();
process.stdout.write(`${JSON.stringify(seen)}\n`);
