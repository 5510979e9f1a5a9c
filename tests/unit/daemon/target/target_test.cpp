// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What a target does without an RDMA device. With one: tests/vm/rdma.
#include "target/target.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include <catch2/catch.hpp>

using namespace smc;

namespace {

constexpr int kNoAnswer = -1;

struct NoEvents final : TargetEvents {
    void revoked(SessionId, const std::string&, Generation) override { FAIL("revoked"); }
    void session_lost(SessionId, const std::string&) override { FAIL("lost"); }
};

class Fixture {
public:
    explicit Fixture(TargetOptions options = {})
        : loop(EventLoop::create().value()),
          target(Target::create(*loop, with_no_device(std::move(options)), events).value())
    {}

    int add(const std::string& name, std::uint64_t length = 4096)
    {
        ExportSpec spec;
        spec.name = name;
        spec.source = HostMemory{length, false};
        return add(std::move(spec));
    }

    // The answer.
    int add(ExportSpec spec)
    {
        int code = kNoAnswer;
        target->add_export(std::move(spec), into<ExportInfo>(code));
        wait(code);
        return code;
    }

    // Receives an answer, which never comes from within the call.
    template <class T>
    Done<T> into(int& code)
    {
        code = kNoAnswer;
        return [this, &code](const Result<T>& result) {
            CHECK(running_);
            CHECK(code == kNoAnswer);
            code = result ? 0 : result.error().code;
        };
    }

    void wait(const int& code)
    {
        running_ = true;
        while (code == kNoAnswer)
            REQUIRE(loop->step());
        running_ = false;
    }

    NoEvents events;
    std::unique_ptr<EventLoop> loop;
    std::unique_ptr<Target> target;

private:
    bool running_ = false;

    // Whatever this machine has.
    static TargetOptions with_no_device(TargetOptions options)
    {
        options.devices = {"no-such-device"};
        return options;
    }
};

} // namespace

TEST_CASE("exports have names, generations and memory of their own", "[target]")
{
    Fixture f;
    REQUIRE(f.add("a", 10000) == 0);
    REQUIRE(f.add("b/c") == 0);
    CHECK(f.target->names() == std::vector<std::string>{"a", "b/c"});
    const auto infos = f.target->exports();
    REQUIRE(infos.size() == 2);
    CHECK(infos[0].size == 10000);
    CHECK(infos[0].mode == 0600);
    CHECK(infos[0].provider == "host");
    CHECK(infos[0].keys == Keys::none);
    CHECK(infos[0].generation != 0);
    CHECK(infos[0].generation != infos[1].generation);
    CHECK_FALSE(infos[0].writer);
    CHECK_FALSE(f.target->find_export("b"));

    const auto fd = f.target->export_fd("a");
    REQUIRE(fd);
    struct stat status {};
    REQUIRE(::fstat(fd->get(), &status) == 0);
    CHECK(status.st_size >= 10000);
    CHECK(f.target->export_fd("b").error().code == EISDIR);
    CHECK(f.target->export_fd("x").error().code == ENOENT);
}

TEST_CASE("a name is exported once and is no directory of another", "[target]")
{
    Fixture f;
    REQUIRE(f.add("job/params") == 0);
    CHECK(f.add("job/params") == EEXIST);
    CHECK(f.add("job") == EEXIST);
    CHECK(f.add("job/params/x") == EEXIST);
    CHECK(f.add("job/param") == 0);
    CHECK(f.add("jobs") == 0);
    CHECK(f.add("../x") == EINVAL);
    CHECK(f.add("") == EINVAL);
    CHECK(f.add(std::string(200, 'a')) == ENAMETOOLONG);
    CHECK(f.add("zero", 0) == EINVAL);
    CHECK(f.add("huge", SMCFS_REGION_SIZE_MAX + 1) == EFBIG);
    CHECK(f.target->names().size() == 3); // what failed left nothing

    ExportSpec spec;
    spec.name = "setuid";
    spec.mode = 04755;
    spec.source = HostMemory{4096, false};
    const int refused = f.add(std::move(spec));
    CHECK(refused == EINVAL);
}

TEST_CASE("an export that goes frees its name, and comes back as other memory", "[target]")
{
    Fixture f;
    REQUIRE(f.add("a") == 0);
    const auto before = f.target->find_export("a")->generation;
    int removed = kNoAnswer;
    int again = kNoAnswer;
    f.target->remove_export("a", f.into<void>(removed));
    // Until then the name is taken, and nobody finds it.
    CHECK_FALSE(f.target->find_export("a"));
    CHECK(f.target->names().empty());
    int taken = kNoAnswer;
    ExportSpec spec;
    spec.name = "a";
    spec.source = HostMemory{4096, false};
    f.target->add_export(std::move(spec), f.into<ExportInfo>(taken));
    f.target->remove_export("a", f.into<void>(again));
    f.wait(removed);
    f.wait(again);
    f.wait(taken);
    CHECK(removed == 0);
    CHECK(taken == EEXIST);
    CHECK(again == ENOENT);
    REQUIRE(f.add("a") == 0);
    CHECK(f.target->find_export("a")->generation != before);
}

TEST_CASE("exports are limited in number", "[target]")
{
    TargetOptions options;
    options.exports_max = 2;
    Fixture f(options);
    CHECK(f.add("a") == 0);
    CHECK(f.add("b") == 0);
    CHECK(f.add("c") == EUSERS);
}

TEST_CASE("without a device sessions are refused with the reason, and nothing else breaks",
          "[target]")
{
    Fixture f;
    REQUIRE(f.add("a") == 0);
    CHECK(f.target->session_open(1, "n").error().code == ENODEV);
    CHECK(f.target->probe_open("n").error().code == ENODEV);
    CHECK(f.target->session_adopt(1).error().code == ESTALE);
    CHECK(f.target->writer_acquire(1, "a").error().code == ESTALE);
    f.target->session_disown(1);
    int granted = 0;
    int released = 0;
    int closed = 0;
    f.target->grant(1, "a", f.into<Grant>(granted));
    f.target->grant_release(1, "a", f.into<void>(released));
    f.target->session_close(1, f.into<void>(closed));
    f.wait(granted);
    f.wait(released);
    f.wait(closed);
    CHECK(granted == ESTALE);
    CHECK(released == 0);
    CHECK(closed == 0);
    CHECK(f.target->sessions().empty());
}

TEST_CASE("an offered address that is none is refused when the target is made", "[target]")
{
    NoEvents events;
    const auto loop = EventLoop::create().value();
    TargetOptions options;
    options.addresses = {"gpu7"};
    const auto target = Target::create(*loop, options, events);
    REQUIRE_FALSE(target);
    CHECK(target.error().what.find("gpu7") != std::string::npos);
}

TEST_CASE("callbacks of a target that is gone do not run", "[target]")
{
    Fixture f;
    REQUIRE(f.add("a") == 0);
    f.target->remove_export("a", [](const auto&) { FAIL("the target is gone"); });
    ExportSpec spec;
    spec.name = "b";
    spec.source = FilePath{"/dev/shm/smc-no-such-file", 0, 0};
    f.target->add_export(std::move(spec), [](const auto&) { FAIL("the target is gone"); });
    f.target.reset();
    f.loop->defer([&] { f.loop->exit(0); });
    REQUIRE(f.loop->run());
}

TEST_CASE("an export whose file is being opened holds up nothing, and can be given up", "[target]")
{
    Fixture f;
    char path[] = "/dev/shm/smc-target-test-XXXXXX";
    const Fd file(::mkstemp(path));
    REQUIRE(file);
    REQUIRE(::ftruncate(file.get(), 8192) == 0);
    const auto spec = [&] {
        ExportSpec made;
        made.name = "a";
        made.source = FilePath{path, 0, 0};
        return made;
    };
    int first = kNoAnswer;
    int second = kNoAnswer;
    int removed = kNoAnswer;
    f.target->add_export(spec(), f.into<ExportInfo>(first));
    f.target->add_export(spec(), f.into<ExportInfo>(second));
    f.wait(second);
    CHECK(second == EEXIST); // also while it is not open yet
    f.target->remove_export("a", f.into<void>(removed));
    f.wait(removed);
    f.wait(first);
    CHECK((first == ECANCELED || first == 0)); // by whether the file was opened before
    CHECK(f.target->names().empty());
    CHECK(f.add(spec()) == 0);
    CHECK(f.target->find_export("a")->size == 8192);
    ::unlink(path);
    CHECK(f.add([&] {
        auto made = spec();
        made.name = "b";
        return made;
    }()) == ENOENT);
}
