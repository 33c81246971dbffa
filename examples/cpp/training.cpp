/*
 * training DIRECTORY - the library from C++: a class that owns the writer, and errors as exceptions.
 * c++ -o training training.cpp $(pkg-config --cflags --libs eventlog)
 */
#include <eventlog/eventlog.h>

#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

class Log {
public:
    explicit Log(const std::string &directory)
    {
        eventlog_writer *opened = nullptr;
        eventlog_error error;

        check(eventlog_writer_open(&opened, directory.c_str(), nullptr, &error), error);
        writer.reset(opened);
    }

    void scalar(const std::string &tag, std::int64_t step, float value)
    {
        eventlog_error error;

        check(eventlog_writer_scalar(writer.get(), tag.c_str(), step, 0, value, &error), error);
    }

    void histogram(const std::string &tag, std::int64_t step, const std::vector<float> &values)
    {
        eventlog_error error;

        check(eventlog_writer_histogram_floats(writer.get(), tag.c_str(), step, 0, values.data(), values.size(),
                                               nullptr, &error), error);
    }

    void text(const std::string &tag, std::int64_t step, const std::string &markdown)
    {
        eventlog_error error;

        check(eventlog_writer_text(writer.get(), tag.c_str(), step, 0, markdown.c_str(), nullptr, &error), error);
    }

    /* Writes what is buffered and says whether that worked; the destructor cannot. */
    void close()
    {
        eventlog_error error;

        check(eventlog_writer_close(writer.release(), &error), error);
    }

private:
    struct Closer {
        void operator()(eventlog_writer *opened) const { eventlog_writer_close(opened, nullptr); }
    };
    std::unique_ptr<eventlog_writer, Closer> writer;

    static void check(int rc, const eventlog_error &error)
    {
        if (rc != EVENTLOG_OK)
            throw std::runtime_error(error.message);
    }
};

int main(int argc, char **argv)
{
    if (argc != 2) {
        std::cerr << "usage: training DIRECTORY\n";
        return 2;
    }
    try {
        Log log(argv[1]);
        std::vector<float> weights(1000);

        log.text("notes", 0, "written from **C++**");
        for (int step = 0; step < 100; step++) {
            for (std::size_t i = 0; i < weights.size(); i++)
                weights[i] = std::sin(static_cast<float>(i) * 0.1f) * static_cast<float>(step + 1);
            log.scalar("loss", step, 1 / (1 + static_cast<float>(step)));
            log.histogram("weights", step, weights);
        }
        log.close();
    } catch (const std::exception &failure) {
        std::cerr << "training: " << failure.what() << '\n';
        return 1;
    }
    return 0;
}
