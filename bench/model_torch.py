#!/usr/bin/env python3
"""The trainer's small models in PyTorch, channels last, one thread: lenet, cifar10_cnn, mnist_lstm and mnist_cnn with the
layers, the optimizer and the loss of `trainer describe MODEL`, on a batch of noise that is made before the first step.

Prints `seconds a step: X` of the processor, of the steps after --warm-up.
"""
import model_peer
import torch
from torch import nn
from torch.nn import functional


class Lenet(nn.Module):
    shape, decay = (1, 28, 28), 0.0001

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 10, 5), nn.Conv2d(10, 20, 5)
        self.fc3, self.fc4 = nn.Linear(320, 50), nn.Linear(50, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = functional.dropout(functional.relu(self.fc3(x.flatten(1))), 0.5, self.training)
        return self.fc4(x)

    def optimizer(self):
        kernels = [p for p in self.parameters() if p.dim() > 1]
        others = [p for p in self.parameters() if p.dim() == 1]
        return torch.optim.SGD([{"params": kernels, "weight_decay": self.decay}, {"params": others}], lr=0.05, momentum=0.9)


class Cifar10Cnn(nn.Module):
    shape = (3, 24, 24)

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 64, 5, padding=2), nn.Conv2d(64, 64, 5, padding=2)
        self.norm = nn.LocalResponseNorm(9, 0.001, 0.75)
        self.local3, self.local4, self.logit = nn.Linear(2304, 384), nn.Linear(384, 192), nn.Linear(192, 10)

    def pool(self, x):
        """3x3 at stride 2, padded after the last row and column, as TensorFlow pads."""
        return functional.max_pool2d(functional.pad(x, (0, 1, 0, 1)), 3, 2)

    def forward(self, x):
        x = self.norm(self.pool(functional.relu(self.conv1(x))))
        x = self.pool(self.norm(functional.relu(self.conv2(x))))
        x = functional.relu(self.local3(x.flatten(1)))
        return self.logit(functional.relu(self.local4(x)))

    def optimizer(self):
        decayed = [self.local3.weight, self.local4.weight]
        others = [p for p in self.parameters() if all(p is not d for d in decayed)]
        return torch.optim.SGD([{"params": decayed, "weight_decay": 0.004}, {"params": others}], lr=0.1)


class MnistLstm(nn.Module):
    shape = (28, 28)

    def __init__(self):
        super().__init__()
        self.lstm, self.logit = nn.LSTM(28, 64, batch_first=True), nn.Linear(64, 10)

    def forward(self, x):
        return self.logit(self.lstm(x)[0][:, -1])

    def optimizer(self):
        return torch.optim.Adam(self.parameters(), lr=0.001)


class MnistCnn(nn.Module):
    shape = (1, 28, 28)

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(128 if i else 1, 128, size, padding=size // 2)
                                    for i, size in enumerate((5, 5, 3, 3, 3, 3)))
        self.logit = nn.Linear(1152, 10)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = functional.relu(layer(x))
            if i % 2:
                x = functional.max_pool2d(x, 2)
        return self.logit(x.flatten(1))

    def optimizer(self):
        return torch.optim.Adam(self.parameters(), lr=0.001)


MODELS = {"lenet": Lenet, "cifar10_cnn": Cifar10Cnn, "mnist_lstm": MnistLstm, "mnist_cnn": MnistCnn}


def main():
    parser = model_peer.parser(__doc__, MODELS)
    parser.add_argument("--bfloat16", action="store_true", help="forward under torch.autocast")
    parser.add_argument("--compile", action="store_true", help="by torch.compile")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.manual_seed(1)
    network = MODELS[options.model]()
    images, labels = torch.rand(options.batch_size, *network.shape), torch.randint(10, (options.batch_size,))
    optimizer = network.optimizer()
    if images.dim() == 4:
        network, images = network.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)
    called = torch.compile(network) if options.compile else network

    def train_step():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.bfloat16):
            logits = called(images)
        loss = functional.cross_entropy(logits.float(), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model_peer.tell_seconds(options, train_step)


if __name__ == "__main__":
    main()
