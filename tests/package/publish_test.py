#!/usr/bin/python3
"""Usage: publish_test.py [MONITOR]

A dry run of .github/workflows/release.yml: its form, its scripts, and what its steps call. Stand-ins for gh, npm, twine and docker
record their calls. Fills in the formula for Homebrew, and installs with it where Ruby exists.
"""

import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
WORKFLOWS = sorted((SOURCE / ".github/workflows").glob("*.y*ml"))
RELEASE = SOURCE / ".github/workflows/release.yml"
PAGE = SOURCE / "docs/project/releasing.md"
VERSION = re.search(r"project\(watchdog VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
PUBLISH = SOURCE / "scripts/publish"
FORMULA = SOURCE / "packaging/homebrew/make-formula"
HOME = "https://github.com/OWNER/REPOSITORY"
URL = f"{HOME}/releases/download/v1"
NPM = [f"watchdog-{name}-{VERSION}.tgz" for name in ("monitor-linux-x64", "monitor-linux-arm64", "monitor", "client")]
WHEELS = [f"watchdog_client-{VERSION}-py3-none-any.whl", f"watchdog_monitor-{VERSION}-py3-none-manylinux_2_17_x86_64.whl"]
PATIENCE_S = 60

JOB_KEYS = {"runs-on", "container", "needs", "if", "environment", "permissions", "steps"}
STEP_KEYS = {"name", "uses", "with", "run", "env", "if"}
PERMISSIONS = {"contents": {"read", "write"}, "packages": {"write"}, "pages": {"write"}, "id-token": {"write"}}


def workflow(path):
    read = yaml.safe_load(path.read_text())
    # YAML takes the word `on` for true.
    return {"on" if key is True else key: value for key, value in read.items()}


def steps(path):
    return [(name, step) for name, job in workflow(path)["jobs"].items() for step in job["steps"]]


class Workflow(unittest.TestCase):
    def test_a_tag_starts_the_release_and_nothing_else_does(self):
        self.assertEqual([path.name for path in WORKFLOWS], ["release.yml"])
        self.assertEqual(workflow(RELEASE)["on"], {"push": {"tags": ["v*.*.*"]}})

    def test_the_form_is_that_of_a_workflow(self):
        for path in WORKFLOWS:
            whole = workflow(path)
            self.assertLessEqual(set(whole), {"name", "on", "permissions", "concurrency", "jobs", "env"})
            for name, job in whole["jobs"].items():
                with self.subTest(job=name):
                    self.assertLessEqual(set(job), JOB_KEYS)
                    self.assertTrue(job["runs-on"] and job["steps"])
                    needed = job.get("needs", [])
                    self.assertLessEqual(set(needed), set(whole["jobs"]) - {name})
                    for scope, level in job.get("permissions", {}).items():
                        self.assertIn(level, PERMISSIONS[scope])
                    for step in job["steps"]:
                        self.assertLessEqual(set(step), STEP_KEYS)
                        self.assertEqual(len({"uses", "run"} & set(step)), 1, step)
                        self.assertRegex(step.get("uses", "a/b@v1"), r"^[\w-]+/[\w-]+@(v\d+|[0-9a-f]{40})$")

    def test_each_script_parses_and_exists(self):
        called = set()
        for job, step in steps(RELEASE):
            if "run" in step:
                with self.subTest(job=job, run=step["run"]):
                    self.assertNotIn("${{", step["run"], "an expression would become code; pass it as a variable")
                    subprocess.run(["bash", "-n", "-c", step["run"]], check=True)
                    for script in re.findall(r"(?:^|[;&|]\s*)((?:scripts|packaging)/\S+)", step["run"], re.M):
                        self.assertTrue(os.access(SOURCE / script, os.X_OK), script)
                        called.add(script)
                        if b"bash" in (SOURCE / script).read_bytes().split(b"\n", 1)[0]:
                            subprocess.run(["bash", "-n", SOURCE / script], check=True)
        self.assertEqual(called, {"scripts/cross", "scripts/release", "scripts/docs", "scripts/test", "scripts/publish"})

    def test_each_option_of_a_script_is_in_its_help(self):
        for _, step in steps(RELEASE):
            for script, rest in re.findall(r"^(scripts/\S+)(.*)$", step.get("run", ""), re.M):
                told = subprocess.run([SOURCE / script, "--help"], capture_output=True, text=True, check=True).stdout
                for option in re.findall(r"--[a-z]+", rest):
                    self.assertIn(option, told, script)

    def test_all_that_signs_and_publishes_is_off_at_first(self):
        jobs = workflow(RELEASE)["jobs"]
        self.assertEqual(set(jobs) - {"build", "test"}, {"sign", "github", "npm", "pypi", "image", "site"})
        for name, job in jobs.items():
            with self.subTest(job=name):
                text = str(job)
                if name in ("build", "test"):
                    self.assertNotIn("secrets.", text)
                    self.assertNotIn("permissions", job)
                else:
                    self.assertRegex(job["if"], r"vars\.[A-Z_]+ == 'true'")
                    self.assertTrue(job["environment"])
                    self.assertLessEqual({"build", "test"}, set(job["needs"]), "it would publish what is not tested")
        self.assertEqual(workflow(RELEASE)["permissions"], {"contents": "read"})

    def test_the_page_names_each_variable_and_secret(self):
        page = PAGE.read_text()
        names = set(re.findall(r"(?:vars|secrets)\.(\w+)", RELEASE.read_text()))
        self.assertEqual({name for name in names if f"`{name}`" not in page}, set())


class Release(unittest.TestCase):
    """A folder with the names that scripts/release gives its files."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.work = pathlib.Path(temporary.name)
        self.folder = self.work / "dist"
        self.folder.mkdir()
        (self.work / "bin").mkdir()
        for name in NPM:
            self.package(name, HOME)
        for name in WHEELS:
            self.wheel(name, HOME)
        for name in (f"watchdog-monitor-{VERSION}-image-x86_64.tar.gz", f"watchdog-monitor-{VERSION}-image-aarch64.tar.gz", "NOTES.md"):
            (self.folder / name).write_text(name)
        self.sum_up()
        for name in ("gh", "npm", "twine", "docker"):
            self.stand_in(name, f'printf "%s\\n" "{name} $*" >>"{self.work}/calls"')

    def package(self, name, home):
        facts = json.dumps({"name": name, **({"homepage": home} if home else {})}, indent=2).encode()
        member = tarfile.TarInfo("package/package.json")
        member.size = len(facts)
        with tarfile.open(self.folder / name, "w:gz") as packed:
            packed.addfile(member, io.BytesIO(facts))

    def wheel(self, name, home):
        facts = f"Metadata-Version: 2.4\nName: {name}\n" + (f"Project-URL: Repository, {home}\n" if home else "")
        with zipfile.ZipFile(self.folder / name, "w") as packed:
            packed.writestr("x.dist-info/METADATA", facts)

    def sum_up(self):
        names = sorted(path.name for path in self.folder.iterdir() if path.name != "SHA256SUMS")
        (self.folder / "SHA256SUMS").write_text(subprocess.run(["sha256sum", "--", *names], cwd=self.folder, capture_output=True, text=True, check=True).stdout)

    def stand_in(self, name, code):
        file = self.work / "bin" / name
        file.write_text(f"#!/bin/bash\n{code}\n")
        file.chmod(0o755)

    def publish(self, *words, **more):
        environment = {"PATH": f"{self.work}/bin:/usr/bin:/bin", "GH_TOKEN": "t", "IMAGE": "example.org/watchdog-monitor", **more}
        done = subprocess.run([PUBLISH, *words], env=environment, cwd=self.work, capture_output=True, text=True, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL)
        self.said = done.stdout + done.stderr
        return done.returncode

    def calls(self):
        file = self.work / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def test_each_publishing_step_calls_its_registry(self):
        expected = {"github": "gh release create v", "npm": "npm publish ", "pypi": "twine upload ", "image": "docker buildx build "}
        jobs = workflow(RELEASE)["jobs"]
        for name, call in expected.items():
            with self.subTest(job=name):
                (step,) = (step for step in jobs[name]["steps"] if "scripts/publish" in step.get("run", ""))
                self.assertEqual(step["run"], f"scripts/publish {name} dist")
                self.assertEqual(self.publish(*step["run"].split()[1:]), 0, self.said)
                self.assertTrue(self.calls()[-1].startswith(call), self.calls())

    def test_npm_gets_the_programs_before_the_launcher(self):
        self.assertEqual(self.publish("npm", "dist"), 0, self.said)
        self.assertEqual([call.rpartition("./")[2] for call in self.calls()],
                         [f"watchdog-monitor-linux-arm64-{VERSION}.tgz", f"watchdog-monitor-linux-x64-{VERSION}.tgz", f"watchdog-monitor-{VERSION}.tgz",
                          f"watchdog-client-{VERSION}.tgz"])

    def test_a_package_that_does_not_name_its_repository_is_not_published(self):
        for target, names, make in (("npm", NPM, self.package), ("pypi", WHEELS, self.wheel)):
            for name in names:
                for home in ("", "nowhere"):
                    with self.subTest(package=name, home=home):
                        make(name, home)
                        self.sum_up()
                        self.assertEqual(self.publish(target, "dist"), 1)
                        self.assertIn(f"{name} does not name its repository", self.said)
                make(name, HOME)
        self.assertEqual(self.calls(), [])

    def test_github_gets_all_files_and_the_notes(self):
        self.assertEqual(self.publish("github", "dist"), 0, self.said)
        (call,) = self.calls()
        for file in self.folder.iterdir():
            self.assertIn(file.name, call.split())
        self.assertIn(f"create v{VERSION} --verify-tag ", call)

    def test_the_image_is_that_of_the_dockerfile(self):
        self.stand_in("docker", f'cp -r "${{@: -1}}" "{self.work}/context"; echo "$*" >"{self.work}/calls"')
        self.assertEqual(self.publish("image", "dist"), 0, self.said)
        self.assertIn(f"--platform linux/amd64,linux/arm64 --tag example.org/watchdog-monitor:{VERSION} ", self.calls()[0])
        last = (SOURCE / "packaging/container/Dockerfile").read_text().partition("\nFROM scratch\n")[2]
        made = (self.work / "context/Dockerfile").read_text()
        self.assertEqual(made, "FROM scratch\n" + re.sub("^COPY --from=build .*", "ARG TARGETARCH\nADD $TARGETARCH.tar.gz /", last))
        self.assertEqual({path.name for path in (self.work / "context").iterdir()}, {"Dockerfile", "amd64.tar.gz", "arm64.tar.gz"})

    def test_a_dry_run_calls_nothing(self):
        for target in ("sign", "github", "npm", "pypi", "image"):
            self.assertEqual(self.publish(target, "dist", "--dry-run", GH_TOKEN="", IMAGE=""), 0, self.said)
            self.assertRegex(self.said, "^(minisign|gh|npm|twine|docker) ")
        self.assertEqual(self.calls(), [])

    def test_a_changed_or_missing_file_is_not_published(self):
        (self.folder / "NOTES.md").write_text("changed")
        self.assertEqual(self.publish("github", "dist"), 1)
        self.assertIn("NOTES.md", self.said)
        for path in self.folder.glob("*.whl"):
            path.unlink()
        self.sum_up()
        self.assertEqual(self.publish("pypi", "dist"), 1)
        self.assertIn("no wheel", self.said)
        (self.folder / "SHA256SUMS").unlink()
        self.assertEqual(self.publish("npm", "dist"), 1)
        self.assertEqual(self.calls(), [])

    def test_a_missing_secret_is_named(self):
        self.assertEqual(self.publish("github", "dist", GH_TOKEN=""), 3)
        self.assertIn("GH_TOKEN", self.said)
        self.assertEqual(self.publish("everywhere", "dist"), 2)

    @unittest.skipUnless(shutil.which("minisign"), "minisign is not installed")
    def test_the_signature_is_good(self):
        # A key without a password: to derive one from a password takes seconds.
        subprocess.run(["minisign", "-G", "-W", "-p", "public", "-s", "secret"], cwd=self.work, capture_output=True, check=True)
        self.assertEqual(self.publish("sign", "dist", MINISIGN_KEY=(self.work / "secret").read_text(), MINISIGN_PASSWORD="pass word"), 0, self.said)
        subprocess.run(["minisign", "-V", "-p", self.work / "public", "-m", "SHA256SUMS"], cwd=self.folder, capture_output=True, check=True)


# The part of Homebrew that this formula uses.
HOMEBREW = r"""
require "fileutils"; require "pathname"; require "digest"; require "open3"
class Pathname; def install(*names) mkpath; names.each { |name| FileUtils.mv(name, self) } end end
class Formula
  class << self
    attr_reader :facts
    def said; @facts ||= {}; end
    %w[desc homepage version license].each { |name| define_method(name) { |text| said[name] = text } }
    def depends_on(what) said["on"] = what; end
    def on_intel; yield if ENV["CPU"] == "x86_64"; end
    def on_arm; yield if ENV["CPU"] == "aarch64"; end
    def url(text) said["url"] = text; end
    def sha256(text) said["sha256"] = text; end
    def service(&block) @service = block; end
    def test(&block) define_method(:test, &block); end
  end
  def prefix; Pathname(ENV["PREFIX"]); end
  def bin; prefix/"bin"; end
  def version; self.class.said["version"]; end
  def shell_output(command) text, status = Open3.capture2(command); raise "failed" unless status.success?; text; end
  def assert_match(one, text) raise "#{one} is not in #{text}" unless text.include?(one); end
end
load ARGV[0]
said = WatchdogMonitor.said
raise "the formula has no tarball for #{ENV["CPU"]}" unless said["url"]
file = File.join(ENV["FILES"], File.basename(said["url"]))
raise "another checksum" unless Digest::SHA256.file(file).hexdigest == said["sha256"]
FileUtils.mkdir_p(ENV["STAGE"])
system("tar", "-xzf", file, "-C", ENV["STAGE"], "--strip-components=1", exception: true)
one = WatchdogMonitor.new
Dir.chdir(ENV["STAGE"]) { one.install }
one.test
puts said["homepage"], said["url"]
"""


class Formula(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.work = pathlib.Path(temporary.name)

    def tarball(self, architecture):
        name = f"watchdog-monitor-{VERSION}-linux-{architecture}"
        tree = self.work / "trees" / name
        for folder in ("bin", "libexec/watchdog", "share/man/man1", "lib/systemd"):
            (tree / folder).mkdir(parents=True)
        if PROGRAM:
            (tree / "bin/watchdog-monitor").symlink_to(PROGRAM)
        else:
            (tree / "bin/watchdog-monitor").write_text(f"#!/bin/sh\necho {VERSION}\n")
            (tree / "bin/watchdog-monitor").chmod(0o755)
        with tarfile.open(self.work / f"{name}.tar.gz", "w:gz") as packed:
            packed.add(tree, name)
        return self.work / f"{name}.tar.gz"

    def made(self, *tarballs):
        subprocess.run([FORMULA, self.work / "watchdog-monitor.rb", URL, *tarballs], check=True)
        text = (self.work / "watchdog-monitor.rb").read_text()
        self.assertNotRegex(text, r"@\w+@", "a place of the template is empty")
        return text

    def test_it_has_the_checksum_of_each_tarball(self):
        tarballs = [self.tarball("x86_64"), self.tarball("aarch64")]
        text = self.made(*tarballs)
        for tarball in tarballs:
            self.assertIn(f'url "{URL}/{tarball.name}"\n    sha256 "{hashlib.sha256(tarball.read_bytes()).hexdigest()}"', text)
        self.assertIn('homepage "https://github.com/OWNER/REPOSITORY"', text)
        self.assertIn(f'version "{VERSION}"', text)

    def test_a_processor_without_a_tarball_is_left_out(self):
        text = self.made(self.tarball("x86_64"))
        self.assertIn("on_intel do", text)
        self.assertNotIn("on_arm", text)
        self.assertEqual(len(re.findall(r"\bdo$|\bdef |\bclass ", text, re.M)), len(re.findall(r"^ *end$", text, re.M)))

    def test_other_files_and_urls_are_refused(self):
        stranger = self.work / "watchdog-monitor-9.9.9-linux-x86_64.tar.gz"
        stranger.write_text("")
        for url, file in ((URL, stranger), ("http://example.org", self.tarball("x86_64"))):
            done = subprocess.run([FORMULA, self.work / "f.rb", url, file], capture_output=True, check=False)
            self.assertEqual(done.returncode, 2)

    @unittest.skipUnless(shutil.which("ruby"), "ruby is not installed")
    def test_it_installs_the_program(self):
        (self.work / "homebrew.rb").write_text(HOMEBREW)
        self.made(self.tarball("x86_64"), self.tarball("aarch64"))
        for cpu in ("x86_64", "aarch64"):
            with self.subTest(cpu=cpu):
                done = subprocess.run(["ruby", self.work / "homebrew.rb", self.work / "watchdog-monitor.rb"], capture_output=True, text=True, check=False,
                                      env={"PATH": "/usr/bin:/bin", "CPU": cpu, "FILES": str(self.work), "STAGE": str(self.work / f"stage-{cpu}"),
                                           "PREFIX": str(self.work / f"prefix-{cpu}")})
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(cpu, done.stdout)
                self.assertTrue((self.work / f"prefix-{cpu}/bin/watchdog-monitor").exists())


if __name__ == "__main__":
    unittest.main()
