#include "support/postgres.h"

#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

namespace watchdog::test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t unprivileged = 65'534;

/// The newest version's programs.
fs::path programs() {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", none)) {
    if (fs::exists(version.path() / "bin/initdb", none)) found.push_back(version.path() / "bin");
  }
  std::sort(found.begin(), found.end());
  return found.empty() ? fs::path() : found.back();
}

[[noreturn]] void give_up(const std::string& why, const fs::path& log) {
  std::fprintf(stderr, "PostgreSQL for tests: %s\n", why.c_str());
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) std::fprintf(stderr, "  %s\n", line.c_str());
  std::_Exit(1);
}

}  // namespace

bool Postgres::is_installed() {
  return !programs().empty();
}

Postgres& Postgres::shared() {
  static Postgres server;
  return server;
}

pid_t Postgres::spawn(std::vector<std::string> words) const {
  const auto log = (directory_ / "log").string();
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  dup2(out, 1);
  dup2(out, 2);
  setsid();
  if (geteuid() == 0 &&
      (setgroups(0, nullptr) != 0 || setgid(unprivileged) != 0 || setuid(unprivileged) != 0))
    _exit(126);
  if (chdir("/") != 0) _exit(126);
  execv(argv[0], argv.data());
  _exit(127);
}

Postgres::Postgres() {
  const fs::path directory = directory_.path();
  if (geteuid() == 0 && chown(directory.c_str(), unprivileged, unprivileged) != 0)
    give_up("chown", {});
  const auto child = spawn({programs() / "initdb", "-D", directory_ / "data", "-U", "postgres",
                            "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"});
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) give_up("initdb failed", directory_ / "log");
  start();
}

void Postgres::start() {
  const fs::path directory = directory_.path();
  // Without fsync: the machine goes on, and keeps all that the server's processes have written.
  pid_ = spawn({programs() / "postgres", "-D", directory_ / "data", "-k", directory.string(), "-c",
                "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=32MB", "-c",
                "max_connections=60"});
  for (int tries = 0; tries < 600; ++tries) {
    if (PQping(url().c_str()) == PQPING_OK) return;
    if (waitpid(pid_, nullptr, WNOHANG) != 0) break;
    poll(nullptr, 0, 50);  // it offers nothing to wait for
  }
  give_up("it does not start", directory_ / "log");
}

Postgres::~Postgres() {
  kill(pid_, SIGQUIT);
  waitpid(pid_, nullptr, 0);
}

void Postgres::crash() {
  kill(pid_, SIGQUIT);
  waitpid(pid_, nullptr, 0);
  start();
}

std::string Postgres::url(const std::string& isolation) const {
  const fs::path directory = directory_.path();
  auto url = "postgresql:///postgres?user=postgres&host=" + directory.string();
  if (!isolation.empty()) url += "&options=-cdefault_transaction_isolation%3D" + isolation;
  return url;
}

std::string Postgres::run(const std::string& sql) const {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectdb(url().c_str()),
                                                                &PQfinish);
  PQsetNoticeProcessor(
      connection.get(), [](void*, const char*) {}, nullptr);
  const auto command = "SET search_path TO watchdog; " + sql;
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(
      PQexec(connection.get(), command.c_str()), &PQclear);
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
    return PQerrorMessage(connection.get());
  return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
}

void Postgres::clear() const {
  (void)run("DROP SCHEMA IF EXISTS watchdog CASCADE");
}

}  // namespace watchdog::test
