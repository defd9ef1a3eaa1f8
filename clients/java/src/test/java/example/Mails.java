package example;

import io.github.millracejobs.Enqueuer;
import io.github.millracejobs.Job;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.spring.JobHandler;
import org.springframework.stereotype.Component;

/** Welcomes new users. */
@Component
public class Mails {
    private final Enqueuer client;

    Mails(Enqueuer client) {
        this.client = client;
    }

    public void signUp(String address) {
        client.enqueue(NewJob.of("SendEmail", address, "Welcome").queue("mails"));
    }

    @JobHandler(value = "SendEmail", timeout = "30s")
    void send(String address, String subject, Job job) {
        System.out.println(subject + ", " + address + ", attempt " + job.attempt());
    }
}
