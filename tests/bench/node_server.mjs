// What people had before: a tracker of arrays for each session, asked over node:http.
// Usage: node node_server.mjs PORT SESSIONS
import http from 'node:http';

class ProgressTracker {
  heartbeats = [];
  stateChanges = [];
  heartbeatInterval = 10_000;
  stuckThreshold = 5;

  heartbeat({ iteration, phase }) {
    this.heartbeats.push({ ts: Date.now(), iteration, phase });
  }

  stateChange({ type, data }) {
    this.stateChanges.push({ ts: Date.now(), type, data });
  }

  isStuck() {
    if (this.heartbeats.length < this.stuckThreshold) return false;
    const recent = this.heartbeats.slice(-this.stuckThreshold);
    const [first, last] = [recent[0].ts, recent[recent.length - 1].ts];
    return this.stateChanges.filter((change) => change.ts >= first && change.ts <= last).length === 0;
  }

  getStatus() {
    const lastHeartbeat = this.heartbeats[this.heartbeats.length - 1];
    const lastChange = this.stateChanges[this.stateChanges.length - 1];
    return {
      alive: Date.now() - lastHeartbeat?.ts < this.heartbeatInterval * 2,
      stuck: this.isStuck(),
      progress: {
        heartbeats: this.heartbeats.length,
        stateChanges: this.stateChanges.length,
        lastChange: lastChange?.type,
        lastChangeAgo: lastChange ? Date.now() - lastChange.ts : null,
      },
    };
  }
}

const [port, sessions] = process.argv.slice(2).map(Number);
const trackers = new Map();
for (let i = 1; i <= sessions; ++i) {
  const tracker = new ProgressTracker();
  for (let beat = 1; beat <= 50; ++beat) {
    tracker.heartbeat({ iteration: beat, phase: 'act' });
    if (beat % 5 < 2) tracker.stateChange({ type: 'step', data: { iteration: beat } });
  }
  trackers.set(`agent-${i}`, tracker);
}

const prefix = '/api/autonomous/progress/';
http
  .createServer((request, response) => {
    const tracker = request.url.startsWith(prefix) && trackers.get(request.url.slice(prefix.length));
    const body = JSON.stringify(tracker ? tracker.getStatus() : { error: 'not found' });
    response.writeHead(tracker ? 200 : 404, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
    });
    response.end(body);
  })
  .listen(port, '127.0.0.1');
