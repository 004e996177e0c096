#!/usr/bin/env python3
"""The rules of recovery: what a looping agent reads of the monitor, what is recorded, and when nothing happens."""

import datetime
import http.client
import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

from server import Server

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
SESSIONS = "/api/autonomous/sessions"
PROGRESS = "/api/autonomous/progress"
SENDER = "watchdog-monitor (a local monitor that the user installed): "
ALL_STEPS = """
[recovery.rules.tell]
step = "nudge"
[recovery.rules.deny]
step = "refuse"
at_most = 2
[recovery.rules.stop]
step = "cancel"
"""
QUIET, TOLD, DENIED, STOPPED = "quiet", "told", "denied", "stopped"


class Agent:
    """An agent behind the hooks of Claude Code. Of each answer it keeps what it was told."""

    def __init__(self, test, session="s", agent="claude-code"):
        self.test, self.session, self.agent, self.calls, self.said = test, session, agent, 0, []

    def hook(self, name, **more):
        body = {"session_id": self.session, "hook_event_name": name} | more
        return self.test.ask("POST", f"/api/hooks/{self.agent}", body)

    def shows(self, call):
        """What it shows of a call before its hook: nothing."""

    def heard(self, answer):
        own = answer.get("hookSpecificOutput", {})
        self.said.append(own.get("additionalContext") or own.get("permissionDecisionReason") or answer.get("stopReason") or "")
        if answer.get("continue") is False:
            return STOPPED
        if own.get("permissionDecision") == "deny":
            return DENIED
        return TOLD if "additionalContext" in own else QUIET

    def call(self, command="pytest tests/a", result="2 failed", tool="Bash"):
        """One call with its result; gives what the agent was told before and after it."""
        self.calls += 1
        of = {"tool_name": tool, "tool_use_id": f"t{self.calls}", "tool_input": {"command": command}}
        self.shows(of)
        before = self.heard(self.hook("PreToolUse", **of))
        if before in (DENIED, STOPPED):
            return before
        after = self.heard(self.hook("PostToolUse", **of, tool_response=result))
        return before if after == QUIET else after

    def begin(self):
        self.hook("SessionStart", source="startup")
        self.hook("UserPromptSubmit", prompt="mend the test")
        return self

    def loop(self, times):
        return [self.call() for _ in range(times)]


class AgentWithTranscript(Agent):
    """It writes each call into its transcript, and the monitor has read that before the hook comes."""

    def hook(self, name, **more):
        self.transcript = self.test.transcripts / f"{self.session}.jsonl"
        self.transcript.touch()
        return super().hook(name, transcript_path=str(self.transcript), **more)

    def shows(self, call):
        block = {"type": "tool_use", "id": call["tool_use_id"], "name": call["tool_name"], "input": call["tool_input"]}
        line = {"type": "assistant", "sessionId": self.session, "uuid": f"u-{block['id']}", "timestamp": datetime.datetime.now(datetime.UTC).isoformat(),
                "message": {"id": f"m-{block['id']}", "role": "assistant", "model": "m", "content": [block], "stop_reason": None, "usage": {}}}
        with self.transcript.open("a") as file:
            file.write(json.dumps(line) + "\n")
        end = time.monotonic() + PATIENCE_S
        events = lambda: self.test.ask("GET", f"{SESSIONS}/{self.session}/events?limit=1000")["events"]
        while not any(event.get("call_id") == block["id"] and event["origin"] == "transcript" for event in events()):
            self.test.assertLess(time.monotonic(), end, "the monitor does not read the transcript")
            time.sleep(0.02)


class RulesTest(unittest.TestCase):
    def start(self, rules, kind=Agent):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "watchdog.toml").write_text(rules)
        self.transcripts = folder / "claude" / "projects" / "x"
        self.transcripts.mkdir(parents=True)
        more = {"CLAUDE_CONFIG_DIR": str(folder / "claude")}
        self.server = self.enterContext(Server(PROGRAM, more, ["--config", folder / "watchdog.toml"]))
        return kind(self).begin()

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        connection.request(method, path, None if body is None else json.dumps(body), {"Authorization": f"Bearer {self.server.secret}"})
        answer = connection.getresponse()
        text = json.load(answer)
        connection.close()
        self.assertLess(answer.status, 300, text)
        return text

    def state(self, session="s"):
        return self.ask("GET", f"{PROGRESS}/{session}")["state"]

    def trail(self):
        """All acts. What came of them is written some seconds later."""
        return [(e["actor"], e["action"], e["target"], e["outcome"].split(" (")[0]) for e in self.ask("GET", "/api/audit")["audit"]
                if e["action"] != "trial"]

    def claims(self, session="s"):
        """What the monitor itself stored of its acts in the session."""
        events = self.ask("GET", f"{SESSIONS}/{session}/events?limit=1000")["events"]
        return [event["text"] for event in events if event.get("text", "").startswith("rule ")]

    def recovery(self, *words):
        return self.command("recovery", *words)

    def command(self, *words):
        database = pathlib.Path(self.server.folder.name, "w.db")
        said = subprocess.run([PROGRAM, *words, "--server", f"http://{self.server.host}", "--token-file", f"{database}-token"],
                              capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        self.assertEqual(said.returncode, 0, said.stderr)
        return said.stdout

    def restart(self):
        self.server.crash()
        self.server.start()

    def test_a_looping_agent_is_nudged_once_refused_twice_and_cancelled(self):
        agent = self.start(ALL_STEPS)
        heard = agent.loop(4)
        while heard[-1] == QUIET and len(heard) < 12:
            heard += agent.loop(1)
        self.assertEqual(heard, [QUIET] * (len(heard) - 1) + [TOLD], "nothing is said before the loop is confirmed")
        told = agent.said[-1]
        self.assertEqual(told, f"{SENDER}the last {len(heard)} calls of Bash `pytest tests/a` gave the same result.")
        self.assertEqual(self.state(), "looping")
        changes = self.ask("GET", f"{PROGRESS}/s")["progress"]["stateChanges"]
        self.assertEqual(agent.loop(2), [DENIED] * 2)
        denied = agent.said[-1]
        self.assertEqual(denied, f"{SENDER}the last {len(heard)} calls of Bash `pytest tests/a` gave the same result, so this one was not run.")
        document = self.ask("GET", f"{PROGRESS}/s")
        self.assertEqual((document["state"], document["progress"]["stateChanges"]), ("looping", changes), "an act is not progress")
        self.assertEqual(agent.loop(1), [STOPPED])
        self.assertIn("cancelled by rule stop: the last", agent.said[-1])
        outcome = self.ask("GET", f"{PROGRESS}/s")["outcome"]
        self.assertEqual((outcome["kind"], outcome["subject"]), ("cancelled", "rule stop"))
        ok = "ok: looping"
        self.assertEqual(self.trail(), [("rule:tell", "nudge", "s", ok), ("rule:deny", "refuse", "s", ok), ("rule:deny", "refuse", "s", ok),
                                        ("rule:stop", "cancel", "s", ok)])
        self.assertEqual([claim.split(":")[0] for claim in self.claims()],
                         ["rule tell did nudge", "rule deny did refuse", "rule deny did refuse", "rule stop did cancel"])
        for said in agent.said:
            self.assertLessEqual(len(said), 300)
        story = self.command("explain", "s")
        self.assertRegex(story, r"(?s)→ looping.*nudge by rule:tell  ok: looping \(R1\), events \d+ to \d+\n.*refuse by rule:deny  ok.*cancel by rule:stop  ok")
        self.assertEqual([act["action"] for act in json.loads(self.command("explain", "s", "--json"))["acts"] if act["action"] != "trial"],
                         ["nudge", "refuse", "refuse", "cancel"])

    def test_a_call_that_the_transcript_shows_before_its_hook_is_refused_too(self):
        agent = self.start(ALL_STEPS, AgentWithTranscript)
        while agent.call() == QUIET:
            self.assertLess(agent.calls, 12)
        self.assertEqual(agent.loop(3), [DENIED, DENIED, STOPPED])
        self.assertEqual([action for _, action, _, _ in self.trail()], ["nudge", "refuse", "refuse", "cancel"])

    def test_a_hook_that_comes_twice_gets_one_act(self):
        agent = self.start(ALL_STEPS)
        self.recovery("pause")
        agent.loop(8)
        self.recovery("resume")
        of = {"tool_name": "Bash", "tool_use_id": "twice", "tool_input": {"command": "pytest tests/a"}}
        self.assertEqual([agent.heard(agent.hook("PreToolUse", **of)) for _ in range(2)], [TOLD, QUIET])
        agent.hook("PostToolUse", **of, tool_response="2 failed")
        self.assertEqual([agent.heard(agent.hook("PreToolUse", **of | {"tool_use_id": "denied"})) for _ in range(2)], [DENIED, QUIET])
        self.assertEqual([action for _, action, _, _ in self.trail()[2:]], ["nudge", "refuse"])

    def test_an_agent_that_does_something_else_is_left_alone(self):
        agent = self.start(ALL_STEPS)
        while agent.call() == QUIET:
            self.assertLess(agent.calls, 12)
        others = [agent.call(f"cat file{number}", f"text {number}") for number in range(6)]
        self.assertEqual(others, [QUIET] * 6, "a new call is neither refused nor talked about")
        self.assertEqual(self.trail(), [("rule:tell", "nudge", "s", "ok: looping")])
        self.assertNotEqual(self.state(), "looping")

    def test_a_dry_run_tells_nothing_and_records_what_it_would_do(self):
        agent = self.start(ALL_STEPS.replace("step =", "dry_run = true\nstep ="))
        self.assertEqual(agent.loop(12), [QUIET] * 12)
        self.assertEqual(self.trail(), [("rule:tell", "nudge", "s", "would nudge: looping"), ("rule:deny", "refuse", "s", "would refuse: looping"),
                                        ("rule:deny", "refuse", "s", "would refuse: looping"), ("rule:stop", "cancel", "s", "would cancel: looping")])
        self.assertEqual((self.state(), self.ask("GET", f"{PROGRESS}/s")["cancel"]), ("looping", None))

    def test_a_pause_stops_all_rules_and_outlasts_a_crash(self):
        agent = self.start(ALL_STEPS)
        self.assertIn("paused", self.recovery("pause"))
        self.assertEqual(agent.loop(8), [QUIET] * 8)
        self.restart()
        self.assertEqual(agent.loop(2), [QUIET] * 2)
        self.assertTrue(json.loads(self.recovery("--json"))["paused"])
        self.recovery("resume")
        self.assertEqual(agent.call(), TOLD)
        status = json.loads(self.recovery("status", "--json"))
        self.assertEqual((status["paused"], {rule["name"]: rule["acts"] for rule in status["rules"]}), (False, {"deny": 0, "stop": 0, "tell": 1}))
        self.assertEqual([(action, target) for _, action, target, _ in self.trail()],
                         [("pause_recovery", None), ("resume_recovery", None), ("nudge", "s")])

    def test_a_crash_repeats_no_act(self):
        agent = self.start(ALL_STEPS)
        while agent.call() == QUIET:
            self.assertLess(agent.calls, 12)
        self.restart()
        self.assertEqual(agent.call(), DENIED, "the nudge is not repeated")
        self.restart()
        self.assertEqual(agent.call(), DENIED)
        self.restart()
        self.assertEqual(agent.call(), STOPPED)
        self.assertEqual([action for _, action, _, _ in self.trail()], ["nudge", "refuse", "refuse", "cancel"])

    def test_an_act_is_stored_before_its_answer(self):
        """As if the monitor had died right before the answer: the act's event is there, and its answer was lost."""
        agent = self.start(ALL_STEPS)
        while agent.call() == QUIET:
            self.assertLess(agent.calls, 12)
        self.server.crash()
        with sqlite3.connect(pathlib.Path(self.server.folder.name, "w.db")) as database:
            database.execute("DELETE FROM audit")
        self.server.start()
        agent.call("ls", "a b c")
        self.assertEqual((self.trail(), len(self.claims())), ([], 1), "what is in doubt is not repeated")

    def test_some_verdicts_are_held_out_and_the_report_compares(self):
        self.start('[recovery.rules.tell]\nhold_out = 0.5\n')
        agents = [Agent(self, f"agent-{number}").begin() for number in range(8)]
        for agent in agents:
            while not self.claims(agent.session):
                agent.call()
                self.assertLess(agent.calls, 12)
        told = [agent for agent in agents if any(agent.said)]
        held_out = [agent for agent in agents if agent not in told]
        self.assertTrue(told and held_out, "a session's id and its verdict decide, so this is the same in each run")
        for agent in held_out:
            self.assertEqual(len(self.claims(agent.session)), 1)
            self.assertIn("rule tell held out: nudge: looping", self.claims(agent.session)[0])
        end, rule = time.monotonic() + PATIENCE_S, {}
        while rule.get("openTrials") != 0 or not rule["trials"]:
            self.assertLess(time.monotonic(), end, rule)
            for number, agent in enumerate(told):
                agent.call(f"cat file{agent.calls}-{number}", f"text {agent.calls}")
            for agent in held_out:
                self.assertEqual(agent.call(), QUIET)
            rule = json.loads(self.recovery("report", "--json"))["rules"][0]
        [trials] = rule["trials"]
        self.assertEqual((trials["agent"], rule["holdOut"], rule["off"]), ("claude-code", 0.5, False))
        self.assertEqual((trials["acted"]["recovered"], trials["acted"]["of"]), (len(told), len(told)))
        self.assertEqual((trials["heldOut"]["recovered"], trials["heldOut"]["of"]), (0, len(held_out)))
        said = self.recovery("report")
        self.assertRegex(said, rf"tell +claude-code +{len(told)} of {len(told)} \(\d+ to 100 %\) +0 of {len(held_out)} \(0 to \d+ %\) +0")
        self.restart()
        self.assertEqual(self.recovery("report"), said, "the audit log has it all")

    def test_only_the_rules_sessions_and_confirmed_states_count(self):
        self.start('[recovery.rules.a]\nagent = "codex"\n[recovery.rules.b]\nlabel = "team:mine"\n[recovery.rules.c]\non = ["stuck"]\n')
        agent = Agent(self, "other").begin()
        self.assertEqual(agent.loop(10), [QUIET] * 10)
        codex = Agent(self, "codex", "codex").begin()
        self.assertIn(TOLD, codex.loop(10))
        self.assertEqual(self.trail(), [("rule:a", "nudge", "codex", "ok: looping")])

    def test_a_session_that_waits_for_a_person_is_left_alone(self):
        agent = self.start('[recovery.rules.stop]\nstep = "cancel"\n')
        self.recovery("pause")
        agent.loop(8)
        of = {"tool_name": "Bash", "tool_use_id": "asked", "tool_input": {"command": "pytest tests/a"}}
        agent.hook("PreToolUse", **of)
        agent.hook("PermissionRequest", **of)
        self.recovery("resume")
        self.assertEqual(agent.heard(agent.hook("Notification", message="Claude needs your permission to use Bash")), QUIET)
        self.assertEqual((self.state(), self.trail()[2:]), ("needs_input", []))
        self.assertEqual(agent.heard(agent.hook("PostToolUse", **of, tool_response="2 failed")), STOPPED, "it works and loops again")

    def test_secrets_reach_neither_agent_nor_log(self):
        agent = self.start(ALL_STEPS)
        secret = "abcdefghijklmnop0123"
        command = f"curl -H 'Authorization: Bearer {secret}' x"
        heard = [agent.call(command) for _ in range(9)]
        self.assertIn(DENIED, heard)
        self.assertNotIn(secret, json.dumps([agent.said, self.claims(), self.ask("GET", "/api/audit")]))

    def test_without_rules_nothing_acts(self):
        agent = self.start("")
        self.assertEqual(agent.loop(10), [QUIET] * 10)
        self.assertEqual((self.state(), self.trail(), self.claims()), ("looping", [], []))
        self.assertIn("no rules", self.recovery())


if __name__ == "__main__":
    unittest.main(verbosity=2)
