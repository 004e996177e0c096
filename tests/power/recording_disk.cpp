// A file system in memory that records its operations in order, for tests of power losses. Nothing
// is lost here: forgetful_disk.py reads the record, and computes the files that survive a cut after
// any operation. So one run of a program gives any number of cuts.
//
// Usage: recording_disk FOLDER RECORD
// It mounts itself at FOLDER until it gets SIGTERM. RECORD is one line of JSON for each operation;
// the bytes of a write follow its line. A write to FOLDER/.note, which no listing shows, becomes a
// part of the record, so a test knows what happened before what. The note `room N` leaves N bytes.
//
// One thread answers all requests, and the kernel does locks, shared memory and the cache. It sends
// a write at once, and what was written through shared memory before it asks for a sync.
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr fuse_ino_t note_inode = 2;  // the root is 1
constexpr const char* note_name = ".note";
/// The kernel is the only way to change anything here, so it need not ask again.
constexpr double forever_s = 1e9;

struct Node {
  mode_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  timespec accessed{}, modified{};
  std::string bytes;                          // of a file
  std::map<std::string, fuse_ino_t> names{};  // of a folder
  std::size_t links = 0;                      // names that lead to it
  std::uint64_t known = 0;                    // look-ups that the kernel has not forgotten
};

std::map<fuse_ino_t, Node> nodes;
fuse_ino_t last_inode = note_inode;
std::FILE* record = nullptr;
std::uint64_t used = 0, limit = std::numeric_limits<std::uint64_t>::max();

timespec now() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return time;
}

Node* node_of(fuse_ino_t inode) {
  const auto found = nodes.find(inode);
  return found == nodes.end() ? nullptr : &found->second;
}

/// One that is known to exist: the kernel asks for it by a number that it got here.
Node& at(fuse_ino_t inode) {
  return nodes.at(inode);
}

bool is_folder(const Node& node) {
  return S_ISDIR(node.mode);
}

/// A JSON string. Names of these tests are ASCII.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char one : text) {
    if (one == '"' || one == '\\') out += '\\';
    out += one < ' ' || one == 0x7f ? '?' : one;
  }
  return out + "\"";
}

template <class... Numbers>
std::string line(const char* word, Numbers... numbers) {
  std::string out = std::string("[\"") + word + "\"";
  ((out += "," + std::to_string(numbers)), ...);
  return out;
}

void keep(const std::string& operation, std::string_view bytes = {}) {
  const std::string whole = operation + "]\n";
  if (std::fwrite(whole.data(), 1, whole.size(), record) != whole.size() ||
      std::fwrite(bytes.data(), 1, bytes.size(), record) != bytes.size() ||
      std::fflush(record) != 0) {
    std::perror("recording_disk: the record");
    std::exit(1);
  }
}

struct stat facts_of(fuse_ino_t inode, const Node& node) {
  struct stat facts {};
  facts.st_ino = inode;
  facts.st_mode = node.mode;
  facts.st_uid = node.uid;
  facts.st_gid = node.gid;
  facts.st_nlink = static_cast<nlink_t>(is_folder(node) ? 2 : node.links);
  facts.st_size = static_cast<off_t>(node.bytes.size());
  facts.st_blocks = static_cast<blkcnt_t>((node.bytes.size() + 511) / 512);
  facts.st_blksize = 4096;
  facts.st_atim = node.accessed;
  facts.st_mtim = facts.st_ctim = node.modified;
  return facts;
}

fuse_entry_param entry_of(fuse_ino_t inode) {
  Node& node = at(inode);
  ++node.known;
  fuse_entry_param entry{};
  entry.ino = inode;
  entry.attr = facts_of(inode, node);
  entry.attr_timeout = entry.entry_timeout = forever_s;
  return entry;
}

void drop_if_unused(fuse_ino_t inode) {
  const Node* node = node_of(inode);
  if (node == nullptr || node->links > 0 || node->known > 0) return;
  used -= node->bytes.size();
  nodes.erase(inode);
}

/// False: the disk has no room for it.
bool resize(Node& node, std::size_t size) {
  if (size > node.bytes.size() && size - node.bytes.size() > limit - std::min(used, limit))
    return false;
  used += size;
  used -= node.bytes.size();
  node.bytes.resize(size);
  return true;
}

void look_up(fuse_req_t request, fuse_ino_t parent, const char* name) {
  if (parent == FUSE_ROOT_ID && std::strcmp(name, note_name) == 0) {
    const auto entry = entry_of(note_inode);
    fuse_reply_entry(request, &entry);
    return;
  }
  const auto found = at(parent).names.find(name);
  if (found == at(parent).names.end()) {
    fuse_entry_param none{};  // and the kernel remembers that
    none.entry_timeout = forever_s;
    fuse_reply_entry(request, &none);
    return;
  }
  const auto entry = entry_of(found->second);
  fuse_reply_entry(request, &entry);
}

void forget(fuse_req_t request, fuse_ino_t inode, std::uint64_t count) {
  if (Node* node = node_of(inode)) node->known -= std::min(count, node->known);
  drop_if_unused(inode);
  fuse_reply_none(request);
}

void reply_facts(fuse_req_t request, fuse_ino_t inode) {
  const auto facts = facts_of(inode, at(inode));
  fuse_reply_attr(request, &facts, forever_s);
}

void get_facts(fuse_req_t request, fuse_ino_t inode, fuse_file_info* /*file*/) {
  reply_facts(request, inode);
}

void set_facts(fuse_req_t request, fuse_ino_t inode, struct stat* wanted, int which,
               fuse_file_info* /*file*/) {
  Node& node = at(inode);
  if ((which & FUSE_SET_ATTR_SIZE) != 0 && inode != note_inode) {
    if (!resize(node, static_cast<std::size_t>(wanted->st_size))) {
      fuse_reply_err(request, ENOSPC);
      return;
    }
    node.modified = now();
    keep(line("size", inode, node.bytes.size()));
  }
  if ((which & FUSE_SET_ATTR_MODE) != 0) {
    node.mode = (node.mode & S_IFMT) | (wanted->st_mode & ~static_cast<mode_t>(S_IFMT));
    keep(line("mode", inode, node.mode));
  }
  if ((which & FUSE_SET_ATTR_UID) != 0) node.uid = wanted->st_uid;
  if ((which & FUSE_SET_ATTR_GID) != 0) node.gid = wanted->st_gid;
  if ((which & FUSE_SET_ATTR_ATIME) != 0) node.accessed = wanted->st_atim;
  if ((which & FUSE_SET_ATTR_MTIME) != 0) node.modified = wanted->st_mtim;
  if ((which & FUSE_SET_ATTR_ATIME_NOW) != 0) node.accessed = now();
  if ((which & FUSE_SET_ATTR_MTIME_NOW) != 0) node.modified = now();
  reply_facts(request, inode);
}

/// 0: such a name exists.
fuse_ino_t make(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  if (at(parent).names.contains(name)) return 0;
  const auto inode = ++last_inode;
  const auto* caller = fuse_req_ctx(request);
  nodes[inode] = {mode, caller->uid, caller->gid, now(), now(), {}, {}, 1, 0};
  at(parent).names[name] = inode;
  at(parent).modified = now();
  keep(line("make", parent, inode, mode) + "," + quoted(name));
  return inode;
}

void make_node(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
               dev_t /*device*/) {
  const auto inode = make(request, parent, name, mode);
  if (inode == 0) {
    fuse_reply_err(request, EEXIST);
    return;
  }
  const auto entry = entry_of(inode);
  fuse_reply_entry(request, &entry);
}

void make_folder(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  make_node(request, parent, name, mode | S_IFDIR, 0);
}

void open_file(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  file->keep_cache = 1;
  if (inode == note_inode) file->direct_io = 1;  // each note arrives by itself
  fuse_reply_open(request, file);
}

void create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
            fuse_file_info* file) {
  const auto inode = make(request, parent, name, mode);
  if (inode == 0) {
    fuse_reply_err(request, EEXIST);
    return;
  }
  file->keep_cache = 1;
  const auto entry = entry_of(inode);
  fuse_reply_create(request, &entry, file);
}

void remove(fuse_req_t request, fuse_ino_t parent, const char* name) {
  auto& names = at(parent).names;
  const auto found = names.find(name);
  if (found == names.end() || !at(found->second).names.empty()) {
    fuse_reply_err(request, found == names.end() ? ENOENT : ENOTEMPTY);
    return;
  }
  const auto inode = found->second;
  --at(inode).links;
  names.erase(found);
  at(parent).modified = now();
  keep(line("remove", parent) + "," + quoted(name));
  drop_if_unused(inode);
  fuse_reply_err(request, 0);
}

void rename_to(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t to,
               const char* new_name, unsigned flags) {
  const auto there = at(to).names.find(new_name);
  const bool exists = there != at(to).names.end();
  int error = 0;
  if ((flags & ~static_cast<unsigned>(RENAME_NOREPLACE)) != 0)
    error = EINVAL;
  else if (exists && flags != 0)
    error = EEXIST;
  else if (exists && !at(there->second).names.empty())
    error = ENOTEMPTY;
  const auto moved = at(parent).names.find(name);
  if (error == 0 && moved == at(parent).names.end()) error = ENOENT;
  if (error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  const auto inode = moved->second;
  const auto old = exists ? there->second : 0;
  if (old != inode) {
    at(parent).names.erase(moved);
    at(to).names[new_name] = inode;
    at(parent).modified = at(to).modified = now();
    keep(line("rename", parent, to) + "," + quoted(name) + "," + quoted(new_name));
    if (old != 0) {
      --at(old).links;
      drop_if_unused(old);
    }
  }
  fuse_reply_err(request, 0);
}

void read_file(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset,
               fuse_file_info* /*file*/) {
  const std::string_view bytes = at(inode).bytes;
  const auto part = bytes.substr(std::min(static_cast<std::size_t>(offset), bytes.size()), size);
  fuse_reply_buf(request, part.data(), part.size());
}

void take_note(const std::string& text) {
  keep(std::string("[\"note\",") + quoted(text));
  const std::string room = "room ";
  if (text.starts_with(room)) {
    const std::uint64_t bytes = std::strtoull(text.c_str() + room.size(), nullptr, 10);
    limit = used + std::min(bytes, std::numeric_limits<std::uint64_t>::max() - used);
  }
}

void write_file(fuse_req_t request, fuse_ino_t inode, const char* bytes, std::size_t size,
                off_t offset, fuse_file_info* /*file*/) {
  Node& node = at(inode);
  if (inode == note_inode) {
    take_note({bytes, size});
    fuse_reply_write(request, size);
    return;
  }
  const auto begin = static_cast<std::size_t>(offset);
  if (!resize(node, std::max(node.bytes.size(), begin + size))) {
    fuse_reply_err(request, ENOSPC);
    return;
  }
  std::memcpy(node.bytes.data() + begin, bytes, size);
  node.modified = now();
  keep(line("write", inode, begin, size), {bytes, size});
  fuse_reply_write(request, size);
}

void sync_file(fuse_req_t request, fuse_ino_t inode, int bytes_only, fuse_file_info* /*file*/) {
  keep(line(bytes_only != 0 ? "datasync" : "sync", inode));
  fuse_reply_err(request, 0);
}

void sync_folder(fuse_req_t request, fuse_ino_t inode, int /*bytes_only*/, fuse_file_info*) {
  keep(line("syncdir", inode));
  fuse_reply_err(request, 0);
}

/// A listing is made when the folder is opened, so names that come and go do not move it.
void open_folder(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  std::vector<std::pair<std::string, fuse_ino_t>> names{{".", inode}, {"..", inode}};
  names.insert(names.end(), at(inode).names.begin(), at(inode).names.end());
  std::string listing;
  for (const auto& [name, child] : names) {
    const auto begin = listing.size();
    const auto size = fuse_add_direntry(request, nullptr, 0, name.c_str(), nullptr, 0);
    listing.resize(begin + size);
    const auto facts = facts_of(child, at(child));
    fuse_add_direntry(request, listing.data() + begin, size, name.c_str(), &facts,
                      static_cast<off_t>(listing.size()));
  }
  file->fh = reinterpret_cast<std::uintptr_t>(new std::string(std::move(listing)));
  fuse_reply_open(request, file);
}

void list_folder(fuse_req_t request, fuse_ino_t /*inode*/, std::size_t size, off_t offset,
                 fuse_file_info* file) {
  std::string_view rest = *reinterpret_cast<const std::string*>(file->fh);
  rest.remove_prefix(std::min(static_cast<std::size_t>(offset), rest.size()));
  fuse_reply_buf(request, rest.data(), std::min(size, rest.size()));
}

void close_folder(fuse_req_t request, fuse_ino_t /*inode*/, fuse_file_info* file) {
  delete reinterpret_cast<std::string*>(file->fh);
  fuse_reply_err(request, 0);
}

void get_room(fuse_req_t request, fuse_ino_t /*inode*/) {
  constexpr std::uint64_t block = 4096, most = std::uint64_t{1} << 36U;
  struct statvfs facts {};
  facts.f_bsize = facts.f_frsize = block;
  facts.f_blocks = std::min(limit, most) / block;
  facts.f_bfree = facts.f_bavail = (std::min(limit, most) - std::min({used, limit, most})) / block;
  facts.f_namemax = 255;
  fuse_reply_statfs(request, &facts);
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops all{};
  all.lookup = look_up;
  all.forget = forget;
  all.getattr = get_facts;
  all.setattr = set_facts;
  all.mknod = make_node;
  all.mkdir = make_folder;
  all.open = open_file;
  all.create = create;
  all.unlink = remove;
  all.rmdir = remove;
  all.rename = rename_to;
  all.read = read_file;
  all.write = write_file;
  all.fsync = sync_file;
  all.fsyncdir = sync_folder;
  all.opendir = open_folder;
  all.readdir = list_folder;
  all.releasedir = close_folder;
  all.statfs = get_room;
  return all;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::fputs("Usage: recording_disk FOLDER RECORD\n", stderr);
    return 2;
  }
  record = std::fopen(words[2], "wb");
  if (record == nullptr) {
    std::perror(words[2]);
    return 1;
  }
  nodes[FUSE_ROOT_ID] = {S_IFDIR | 0755, getuid(), getgid(), now(), now(), {}, {}, 1, 1};
  nodes[note_inode] = {S_IFREG | 0600, getuid(), getgid(), now(), now(), {}, {}, 1, 1};

  char name[] = "recording_disk", option[] = "-o";
  // Only root may let other users see it, and needs to: PostgreSQL does not run as root.
  char options[64] = "default_permissions,fsname=recording_disk";
  if (geteuid() == 0) std::strcat(options, ",allow_other");
  char* arguments[] = {name, option, options, nullptr};
  fuse_args all = FUSE_ARGS_INIT(3, arguments);
  const auto asked = operations();
  fuse_session* session = fuse_session_new(&all, &asked, sizeof asked, nullptr);
  if (session == nullptr || fuse_set_signal_handlers(session) != 0 ||
      fuse_session_mount(session, words[1]) != 0)
    return 1;
  std::puts("mounted");
  std::fflush(stdout);
  const int ended = fuse_session_loop(session);
  fuse_session_unmount(session);
  fuse_remove_signal_handlers(session);
  fuse_session_destroy(session);
  fuse_opt_free_args(&all);
  return ended < 0 ? 1 : 0;
}
